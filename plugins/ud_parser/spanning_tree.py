"""Decode a dependency tree: the maximum spanning tree with one root (McDonald et al. 2005)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Heads = NDArray[np.int64]


def maximum_spanning_tree(scores: Scores) -> list[int]:
    """Return the heads of the tree with the largest sum of scores in which one word has the root.

    Args:
        scores: "words words+1", finite: of each head for each word; head 0 is the root, and head i
            is word i, from 1. The score of a word as its own head is ignored.

    Returns:
        The head of each word: 0, or the number of a word.
    """
    num_words = len(scores)
    if not num_words:
        return []
    arcs = np.full((num_words + 1, num_words + 1), -np.inf)
    arcs[1:] = scores
    np.fill_diagonal(arcs, -np.inf)
    # Any tree needs an arc from the root. If each of them costs more than all other arcs can
    # gain, the best tree has only one.
    finite = arcs[np.isfinite(arcs)]
    arcs[1:, 0] -= (num_words + 1) * (finite.max() - finite.min() + 1)
    return [int(head) for head in _arborescence(arcs)[1:]]


@dataclass(frozen=True)
class _Contraction:
    """A cycle that was replaced by one node, which became the last one.

    Attributes:
        heads: the best head of each node before the contraction.
        cycle: the nodes of the cycle.
        outside: the other nodes, in the order of the contracted graph.
        entries: for each node outside as a head, the node of the cycle that it enters at.
        exits: for each node outside as a dependent, the node of the cycle that is its head.
    """

    heads: Heads
    cycle: Heads
    outside: Heads
    entries: Heads
    exits: Heads


def _arborescence(scores: Scores) -> Heads:
    """Return the best head of each node in a tree from node 0 (Chu and Liu 1965, Edmonds 1967).

    While the best heads have a cycle, it is contracted; a tree of the contracted graph says where
    to break it.

    Args:
        scores: "dependents heads"; -inf for arcs that are not allowed.
    """
    contractions: list[_Contraction] = []
    while True:
        heads: Heads = scores.argmax(axis=1)
        heads[0] = 0
        cycle = _cycle(heads)
        if not len(cycle):
            break
        scores, contraction = _contracted(scores, heads, cycle)
        contractions.append(contraction)
    for contraction in reversed(contractions):
        heads = _expanded(heads, contraction)
    return heads


def _cycle(heads: Heads) -> Heads:
    """Return the nodes of one cycle; none if all nodes lead to node 0."""
    visit = np.zeros(len(heads), dtype=np.int64)  # the number of the walk that came here
    visit[0] = -1
    for start in range(1, len(heads)):
        node = start
        while not visit[node]:
            visit[node] = start
            node = int(heads[node])
        if visit[node] == start:
            nodes = [node]
            while heads[nodes[-1]] != node:
                nodes.append(int(heads[nodes[-1]]))
            return np.array(nodes)
    return np.array([], dtype=np.int64)


def _contracted(scores: Scores, heads: Heads, cycle: Heads) -> tuple[Scores, _Contraction]:
    outside = np.setdiff1d(np.arange(len(scores)), cycle)
    # To enter the cycle at a node costs the arc of the cycle to this node.
    entering = scores[np.ix_(cycle, outside)] - scores[cycle, heads[cycle]][:, None]
    leaving = scores[np.ix_(outside, cycle)]
    smaller = np.full((len(outside) + 1, len(outside) + 1), -np.inf)
    smaller[:-1, :-1] = scores[np.ix_(outside, outside)]
    smaller[-1, :-1] = entering.max(axis=0)
    smaller[:-1, -1] = leaving.max(axis=1)
    entries, exits = entering.argmax(axis=0), leaving.argmax(axis=1)
    return smaller, _Contraction(heads, cycle, outside, cycle[entries], cycle[exits])


def _expanded(heads: Heads, contraction: _Contraction) -> Heads:
    """Return the heads before a contraction, from those of the contracted graph."""
    outside, expanded = contraction.outside, contraction.heads.copy()
    is_in_cycle = heads[:-1] == len(outside)
    own = outside[np.minimum(heads[:-1], len(outside) - 1)]
    expanded[outside] = np.where(is_in_cycle, contraction.exits, own)
    expanded[contraction.entries[heads[-1]]] = outside[heads[-1]]
    return expanded
