def blocks(r):
    return {}


def training(r):
    return ""
