"""A session with networkx: shortest paths, clustering, components of a random graph. Needs networkx."""
import networkx


def main():
    graph = networkx.gnm_random_graph(60, 200, seed=3)
    networkx.betweenness_centrality(graph)
    networkx.clustering(graph)
    list(networkx.connected_components(graph))
