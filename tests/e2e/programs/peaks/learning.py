"""scikit-learn: a forest, clusters and a pipeline; scale: thousands of rows."""

BEFORE = ["numpy", "scipy.linalg"]


def main(scale):
    from sklearn.cluster import KMeans
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    points, classes = make_classification(n_samples=scale * 1000, n_features=20, random_state=1)
    forest = RandomForestClassifier(n_estimators=10, random_state=1).fit(points, classes)
    clusters = KMeans(n_clusters=5, n_init=1, random_state=1).fit(points)
    line = make_pipeline(StandardScaler(), LogisticRegression()).fit(points, classes)
    assert len(forest.predict(points)) == len(clusters.labels_) == len(line.predict(points))
