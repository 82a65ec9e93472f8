from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

import mcllo

X, y = make_classification(
    8000, n_redundant=10, n_informative=5, n_classes=3, random_state=0
)
model = GaussianNB().fit(X[:2000], y[:2000])
probs, y = model.predict_proba(X[2000:]), y[2000:]

a = mcllo.assess(probs[:3000], y[:3000], seed=0)
print(a.text(brief=True))

calibrator = mcllo.MCLLOCalibrator().fit(probs[:3000], y[:3000])
print(mcllo.assess(calibrator.predict_proba(probs[3000:]), y[3000:], seed=0).test)
