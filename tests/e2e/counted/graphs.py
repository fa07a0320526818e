"""networkx: paths, components, flows, trees, centrality."""
NEEDS = ["networkx"]


def main():
    import networkx

    graph = networkx.Graph()
    for i in range(60):
        graph.add_edge(i, (i * 7 + 3) % 60, weight=i % 5 + 1)
        graph.add_edge(i, (i + 1) % 60, weight=2)
    directed = networkx.DiGraph()
    for i in range(20):
        directed.add_edge(i, i + 1, capacity=i % 4 + 1)
        directed.add_edge(i, min(i + 3, 20), capacity=2)
    return (networkx.shortest_path_length(graph, 0, 30, weight="weight"),
            networkx.number_connected_components(graph),
            len(list(networkx.minimum_spanning_edges(graph))), networkx.maximum_flow_value(directed, 0, 20),
            round(sum(networkx.betweenness_centrality(graph).values()), 6),
            list(networkx.topological_sort(directed))[:3],
            round(networkx.pagerank(graph, tol=1e-3)[0], 6) if networkx.__version__ < "2" else 0,
            networkx.is_bipartite(graph), len(list(networkx.find_cliques(graph))))
