"""Estimators and pipelines of scikit-learn, exported by skl2onnx with its defaults (string labels,
ZipMap), there and back."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skl2onnx import to_onnx
from skl2onnx.common.data_types import (
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn import (
    calibration,
    cluster,
    decomposition,
    ensemble,
    feature_selection,
    impute,
    linear_model,
    mixture,
    multiclass,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    preprocessing as scaling,
    svm,
    tree,
)
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.pipeline import FeatureUnion, make_pipeline

import bridge
from tests.support.running import OnnxRuntime, OpenVino
from tests.support.sample import sample

RNG = np.random.default_rng(0)
IRIS = load_iris()
X = IRIS.data.astype(np.float32)
THREE = np.array(["setosa", "versicolor", "virginica"], object)[IRIS.target]
TWO = np.where(IRIS.target == 1, "yes", "no").astype(object)
NUMBER = (X @ np.array([1.0, -2.0, 0.5, 3.0]) + 0.1 * RNG.normal(size=len(X))).astype(np.float32)
COUNT = np.abs(NUMBER).round() + 1
WITH_GAPS = RNG.normal(size=(60, 4)).astype(np.float32)
WITH_GAPS[RNG.random(WITH_GAPS.shape) < 0.15] = np.nan
WITH_GAPS = WITH_GAPS[~np.isnan(WITH_GAPS).all(1)]
GIVEN = np.concatenate([X[::10], X[::10] + 0.3 * RNG.normal(size=(15, 4))]).astype(np.float32)

logistic, stump = linear_model.LogisticRegression, tree.DecisionTreeClassifier
seed = {"random_state": 0}
few = {"n_estimators": 5, **seed}

CLASSIFIERS = {
    "logistic": logistic(),
    "logistic, cross-validated": linear_model.LogisticRegressionCV(max_iter=300),
    "ridge classifier": linear_model.RidgeClassifier(),
    "stochastic gradient descent": linear_model.SGDClassifier(loss="log_loss", **seed),
    "perceptron": linear_model.Perceptron(**seed),
    "linear svc": svm.LinearSVC(),
    "svc": svm.SVC(),
    "svc, linear": svm.SVC(kernel="linear"),
    "svc, polynomial": svm.SVC(kernel="poly"),
    "svc, probability": svm.SVC(probability=True, **seed),
    "nu-svc, probability": svm.NuSVC(nu=0.2, probability=True, **seed),
    "decision tree": stump(max_depth=4),
    "extra tree": tree.ExtraTreeClassifier(max_depth=4, **seed),
    "random forest": ensemble.RandomForestClassifier(**few),
    "extra trees": ensemble.ExtraTreesClassifier(**few),
    "gradient boosting": ensemble.GradientBoostingClassifier(**few),
    "ada boost": ensemble.AdaBoostClassifier(**few),
    "bagging": ensemble.BaggingClassifier(**few),
    "stacking": ensemble.StackingClassifier([("a", logistic()), ("b", stump(max_depth=3))]),
    "nearest neighbours": neighbors.KNeighborsClassifier(3),
    "gaussian bayes": naive_bayes.GaussianNB(),
    "bernoulli bayes": naive_bayes.BernoulliNB(),
    "multinomial bayes": naive_bayes.MultinomialNB(),
    "complement bayes": naive_bayes.ComplementNB(),
    "linear discriminant": LinearDiscriminantAnalysis(),
    "quadratic discriminant": QuadraticDiscriminantAnalysis(),
    "neural network": neural_network.MLPClassifier((8,), max_iter=50, **seed),
    "one against rest": multiclass.OneVsRestClassifier(logistic()),
    "calibrated": calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=3),
    "calibrated, isotonic": calibration.CalibratedClassifierCV(
        naive_bayes.GaussianNB(), cv=3, method="isotonic"
    ),
    "scaled": make_pipeline(scaling.StandardScaler(), logistic()),
    "components, then svc": make_pipeline(
        scaling.MinMaxScaler(), decomposition.PCA(2), svm.SVC(probability=True, **seed)
    ),
    "union": make_pipeline(
        FeatureUnion(
            [("p", decomposition.PCA(2)), ("k", feature_selection.SelectKBest(k=1))]
        ),
        ensemble.RandomForestClassifier(**few),
    ),
    "polynomial": make_pipeline(
        scaling.PolynomialFeatures(2), scaling.StandardScaler(), logistic(max_iter=300)
    ),
    "imputed": make_pipeline(impute.SimpleImputer(), stump(max_depth=3)),
}  # fmt: skip

REGRESSORS = {
    "linear": linear_model.LinearRegression(),
    "ridge": linear_model.Ridge(),
    "lasso": linear_model.Lasso(0.01),
    "elastic net": linear_model.ElasticNet(0.01),
    "bayesian ridge": linear_model.BayesianRidge(),
    "huber": linear_model.HuberRegressor(),
    "svr": svm.SVR(),
    "nu-svr": svm.NuSVR(),
    "linear svr": svm.LinearSVR(),
    "decision tree regressor": tree.DecisionTreeRegressor(max_depth=4),
    "random forest regressor": ensemble.RandomForestRegressor(**few),
    "gradient boosting regressor": ensemble.GradientBoostingRegressor(**few),
    "ada boost regressor": ensemble.AdaBoostRegressor(**few),
    "bagging regressor": ensemble.BaggingRegressor(**few),
    "nearest neighbours regressor": neighbors.KNeighborsRegressor(3),
    "partial least squares": PLSRegression(2),
    "voting regressor": ensemble.VotingRegressor(
        [("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3))]
    ),
    "stacking regressor": ensemble.StackingRegressor(
        [("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3))]
    ),
}

TRANSFORMERS = {
    "standard": scaling.StandardScaler(),
    "least and most": scaling.MinMaxScaler(),
    "robust": scaling.RobustScaler(),
    "normalizer": scaling.Normalizer(),
    "binarizer": scaling.Binarizer(threshold=3),
    "bins": scaling.KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    "power": scaling.PowerTransformer(),
    "quantiles": scaling.QuantileTransformer(n_quantiles=10),
    "principal components": decomposition.PCA(2),
    "singular values": decomposition.TruncatedSVD(2),
    "variance": feature_selection.VarianceThreshold(),
    "k-means": cluster.KMeans(3, n_init=2, **seed),
    "gaussian mixture": mixture.GaussianMixture(3, **seed),
    "one class": svm.OneClassSVM(),
    "local outliers": neighbors.LocalOutlierFactor(novelty=True),
}

Case = tuple[Any, Any, Any, list[tuple[str, Any]], dict[str, np.ndarray]]

FLOATS: list[tuple[str, Any]] = [("X", FloatTensorType([None, 4]))]
CASES: dict[str, Case] = {
    **{name: (e, X, THREE, FLOATS, {"X": GIVEN}) for name, e in CLASSIFIERS.items()},
    **{name: (e, X, NUMBER, FLOATS, {"X": GIVEN}) for name, e in REGRESSORS.items()},
    **{name: (e, X, None, FLOATS, {"X": GIVEN}) for name, e in TRANSFORMERS.items()},
    "logistic of two": (logistic(), X, TWO, FLOATS, {"X": GIVEN}),
    "svc of two, probability": (
        svm.SVC(probability=True, **seed), X, TWO, FLOATS, {"X": GIVEN},
    ),
    "random forest of two": (
        ensemble.RandomForestClassifier(**few), X, TWO, FLOATS, {"X": GIVEN},
    ),
    "several labels": (
        multioutput.MultiOutputClassifier(logistic()), X, np.stack([THREE, TWO], 1), FLOATS,
        {"X": GIVEN},
    ),
    "poisson": (linear_model.PoissonRegressor(), X, COUNT, FLOATS, {"X": GIVEN}),
    "imputer": (impute.SimpleImputer(), WITH_GAPS, None, FLOATS, {"X": WITH_GAPS[::3]}),
    "imputer by neighbours": (
        impute.KNNImputer(n_neighbors=2), WITH_GAPS, None, FLOATS, {"X": WITH_GAPS[::3]},
    ),
}  # fmt: skip

WORDS = RNG.choice(np.array(["red", "green", "blue"], object), (60, 2))
ANSWERS = np.where(WORDS[:, 0] == "red", "a", np.where(WORDS[:, 1] == "blue", "b", "c"))
SOME = np.concatenate([WORDS[:10], np.array([["pink", "blue"], ["red", "?"]], object)])
STRINGS: list[tuple[str, Any]] = [("x", StringTensorType([None, 2]))]


def one_hot() -> Any:
    return scaling.OneHotEncoder(handle_unknown="ignore")


def ordinal() -> Any:
    return scaling.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)


def columns(model: Any) -> Any:
    numbers = make_pipeline(impute.SimpleImputer(), scaling.StandardScaler())
    words = make_pipeline(
        impute.SimpleImputer(strategy="constant", fill_value="none", missing_values=""), one_hot()
    )
    parts = ColumnTransformer([("n", numbers, [0, 1]), ("w", words, [2, 3])])
    return make_pipeline(parts, model)


MIXED = np.concatenate([RNG.normal(size=(60, 2)), WORDS], axis=1, dtype=object)
COLUMNS: list[tuple[str, Any]] = [
    ("numbers", FloatTensorType([None, 2])), ("words", StringTensorType([None, 2])),
]  # fmt: skip
PARTS = {"numbers": RNG.normal(size=(12, 2)).astype(np.float32), "words": SOME}

for name, made in {
    "one hot": one_hot(),
    "ordinal": ordinal(),
    "one hot, then logistic": make_pipeline(one_hot(), logistic()),
    "ordinal, then forest": make_pipeline(ordinal(), ensemble.RandomForestClassifier(**few)),
    "imputed words": make_pipeline(
        impute.SimpleImputer(strategy="most_frequent", missing_values=""), one_hot(), stump()
    ),
}.items():
    CASES[name] = made, WORDS, ANSWERS, STRINGS, {"x": SOME}
CASES["columns, logistic"] = columns(logistic()), MIXED, ANSWERS, COLUMNS, PARTS
CASES["columns, boosting"] = (
    columns(ensemble.GradientBoostingClassifier(**few)), MIXED, ANSWERS, COLUMNS, PARTS,
)  # fmt: skip
CASES["columns, ridge"] = columns(linear_model.Ridge()), MIXED, NUMBER[:60], COLUMNS, PARTS
CASES["label binarizer"] = (
    scaling.LabelBinarizer(), np.array([0, 1, 2, 1]), None, [("x", Int64TensorType([None, 1]))],
    {"x": np.array([[0], [2], [1]])},
)  # fmt: skip


@pytest.mark.parametrize("name", sample(CASES, 6))
def test_there_and_back(name: str, tmp_path: Path) -> None:
    estimator, data, target, types, feed = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(data) if target is None else estimator.fit(data, target)
        proto = to_onnx(estimator, initial_types=types)
    original = OnnxRuntime(proto)
    names = [output.name for output in original.session.get_outputs()]
    expected = dict(zip(names, original.run(feed), strict=True))
    bridge.convert(proto, tmp_path / "a.xml")
    boundary = bridge.Boundary.of(tmp_path / "a.xml")
    found = OpenVino(tmp_path / "a.xml").run_packed(boundary, feed)
    _assert_same({name: found[name] for name in names}, expected)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    _assert_same(
        dict(zip(names, OnnxRuntime(tmp_path / "b.onnx").run(feed), strict=True)), expected
    )


def _assert_same(actual: Any, expected: Any) -> None:
    """Equal structure, types and words; numbers within 1e-3. Decisions of a tree or a neighbour in
    f32 need less than that; distances that cancel need it."""
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for key, value in expected.items():
            _assert_same(actual[key], value)
    elif isinstance(expected, list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            _assert_same(one, other)
    else:
        actual, expected = np.asarray(actual), np.asarray(expected)
        assert actual.shape == expected.shape and actual.dtype.kind == expected.dtype.kind
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(actual, expected, 1e-3, 1e-3)
        else:
            np.testing.assert_array_equal(actual, expected)
