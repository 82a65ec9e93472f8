import mcllo

photos = mcllo.datasets.load_cifar10_vgg()  # predictions, labels
before = mcllo.assess(photos.holdout, seed=0)  # of your own: mcllo.assess(probs, y)
print(before.text(brief=True))
calibrator = mcllo.AutoCalibrator().fit(photos.train)  # of your own: .fit(probs, y)
recalibrated = photos.holdout.with_probs(calibrator.predict_proba(photos.holdout))
print(mcllo.assess(recalibrated, seed=0).text(brief=True))
