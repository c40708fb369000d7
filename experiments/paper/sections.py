"""The tables of docs/evidence.md: what they show, the paper's values, and what is to be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Section:
    """A table of the page.

    Attributes:
        study: the name of its study.
        title: its heading.
        text: what it shows, and what differs from the paper; paragraphs have a blank line between.
        paper: the values of the paper by config, one for each of `paper_columns`.
        paper_columns: their headings.
        columns: the heading of each variant of the study that is shown.
        simple: variants of baselines without a network, of which the best is shown.
        gain: two variants; the relative error reduction of the first over the second is added.
        minutes: of a run of each config, on one core, for the estimates of what is not run.
        factors: how many times as long the runs of a variant take.
        notes: further paragraphs, after the table.
    """

    study: str
    title: str
    text: str
    paper: Mapping[str, Sequence[str]]
    paper_columns: Sequence[str]
    columns: Mapping[str, str]
    minutes: Mapping[str, float]
    gain: tuple[str, str] | None = None
    simple: Sequence[str] = ()
    factors: Mapping[str, float] = field(default_factory=dict)
    notes: str = ""


# Minutes of a run, from the tables of experiments/README.md; those of NER and SRL with part of the
# data, as in the studies.
_MINUTES = {"squad": 15, "snli": 8, "srl": 3, "coreference": 20, "ner": 7, "sst": 11}

_LAYERS = {"glove": "GloVe", "layer0": "layer 0", "layer1": "layer 1", "layer2": "layer 2"}
_VECTORS = {**_LAYERS, "average": "average"}

SECTIONS = [
    Section(
        study="table1",
        title="Table 1: six tasks",
        text=(
            "The [control](decisions/random_control.md) is a biLM with the sizes and the scale of "
            "`mini` and with random weights. It is one biLM, so its ± does not contain how such "
            "weights differ. Its file was written several times, with differences of rounding. "
            "`error reduction` compares `mini` with the model without ELMo. "
            "On SQuAD, the control has 60 % of the gain of `mini`, which is 3.4 points above it "
            "(1.1 to 5.7). In coreference, the model without ELMo and `mini` have "
            "three seeds, and the control has two: `mini` is 6.8 points above the model without "
            "ELMo (4.0 to 10.5). On SST-5, the gain of 1.8 points may "
            "be chance: the interval is \u22120.03 to 3.7, and p is 0.056 (0.17 after Holm's "
            "correction). A tagger and a classifier that see characters only, without GloVe, are "
            "below the best baseline without a network; no settings were searched for them. The "
            "other further column, GloVe with 300 dimensions, is in `full` only and was not run."
        ),
        paper={
            "squad": ("81.1", "85.8", "24.9 %"),
            "snli": ("88.0", "88.7", "5.8 %"),
            "srl": ("81.4", "84.6", "17.2 %"),
            "coreference": ("67.2", "70.4", "9.8 %"),
            "ner": ("90.15", "92.22", "21 %"),
            "sst": ("51.4", "54.7", "6.8 %"),
        },
        paper_columns=("paper: baseline", "paper: ELMo", "paper: error reduction"),
        columns={
            "none": "without ELMo",
            "control": "control",
            "mini": "`mini`",
            "characters": "characters, no GloVe",
        },
        gain=("mini", "none"),
        simple=(
            *("known_names", "word_classifier", "majority", "bag_of_words"),
            *("equal_mentions", "nearest_phrase"),
        ),
        minutes=_MINUTES,
        notes=(
            "**NER: a gain on rare names only.** Where a word of a name in a sentence is not among "
            "the 100,000 most frequent ones of GloVe, `mini` adds 2.3 points (1.7 to 3.0) to the "
            "names of the sentence. In the other sentences, which have 73 % of the names, there is "
            "no clear difference (\u22120.3, from \u22120.6 to 0.1). The control loses points in "
            "both: 1.5 and 2.0. These are five seeds on development and test data, with 95 % "
            "intervals over sentences only (`benchmarks/name_frequency.py`). We chose this split "
            "after looking at seeds 1 and 2."
            "\n\n"
            "**Are the curves flat?** On SQuAD they are not: the runs end after eight epochs, "
            "while the scores still rise (with seed 1, in the last one from 55.0 to 56.8 without "
            "ELMo, and from 66.1 to 66.5 with `mini`). In 7 of 15 runs of SNLI, 4 of SRL, 3 of "
            "SST-5 and 2 of NER, too, the last evaluation is the best. Three times the epochs "
            "changed nothing where it was tried (`longer` in [the "
            "search](../experiments/results/baselines/table.md): without ELMo, seed 1, development "
            "data): early stopping ended these runs after 64 epochs in NER, 5 in SST-5 and 16 in "
            "SNLI, in place of 60, 4 and 15, and the best epoch was the same."
            "\n\n"
            "**Next to AllenNLP's heads.** AllenNLP 2.10.1's heads were trained on the same "
            "sentences, with the same vectors, sizes and optimizer (`benchmarks/head_scores.py`). "
            "The scores are the best ones on development data."
            "\n\n"
            "| task | seed | ours | AllenNLP's | settings |\n"
            "| --- | --- | --- | --- | --- |\n"
            "| SQuAD, F1 | 1 | 40.5 | 39.7 | `squad/bidaf.jsonnet` at the sizes of `small`, 800 "
            "questions, 10 epochs, Adam with a constant rate of 0.002 |\n"
            "| SNLI, accuracy | 1 | 75.1 | 75.4 | constant rate |\n"
            "| SRL, F1 | 3 | 36.0 | 30.8 | 2 % of the data, 100,000 words of GloVe |\n"
            "| SRL, F1 | 4 | 36.0 | 31.4 | the same |\n"
            "| coreference, average F1 | 1 | 42.5 | 41.0 | a quarter of the documents, 30 epochs, "
            "constant rate of 0.001; the encoder reads the document; no speakers and genres |\n"
            "| NER, F1 | 1 | 87.7 | 87.6 | 10 % of the data |\n"
            "| SST-5, accuracy | 4 | 46.3 | 46.3 | |"
            "\n\n"
            "In coreference, the 15 documents leave an interval of 4 points on both sides of a "
            "score, so 1.5 points are no clear difference. AllenNLP's best epoch is its last one. "
            "In NER with all sentences, a user of AllenNLP reports 94.3 on development data; "
            "`ner/baseline.jsonnet`, which has the same settings, has 94.4 in epoch 40 of 75 (one "
            "run, stopped after epoch 43). "
            "In SRL, AllenNLP's head has other settings, which ours can have too. Each row adds to "
            "the one above:"
            "\n\n"
            "| our head in SRL | seed 3 | seed 4 |\n"
            "| --- | --- | --- |\n"
            "| as it is | 36.0 | 36.0 |\n"
            "| `decoding: 'probabilities'` | 35.1 | 35.0 |\n"
            "| `loss_reduction: 'mean'`, AllenNLP's initial weights of predicates and projection "
            "| 32.9 | 33.2 |\n"
            "| `recurrent_dropout_place: 'recurrence'` | 30.2 | 29.7 |"
            "\n\n"
            "With that loss alone, or with those weights of predicates alone, seed 4 loses about "
            "half a point; with both, it loses 2.6."
        ),
    ),
    Section(
        study="table2",
        title="Table 2: which layers",
        text=(
            "λ is the penalty of the layer weights. A large one keeps them nearly equal. The top "
            "layer has no layer normalization; in SNLI, the mix of all layers has it. Runs that "
            "Table 1 has too were not trained again. The paper's scores are those of development "
            "data. "
            "In SRL, the last layer and the two mixes differ by less than their seeds do."
        ),
        paper={
            "squad": ("80.8", "84.7", "85.0", "85.2"),
            "snli": ("88.1", "89.1", "89.3", "89.5"),
            "srl": ("81.6", "84.1", "84.6", "84.8"),
        },
        paper_columns=(
            "paper: baseline",
            "paper: last layer",
            "paper: all, λ = 1",
            "paper: all, λ = 0.001",
        ),
        columns={
            "baseline": "without ELMo",
            "top": "last layer",
            "all_1": "all, λ = 1",
            "all_0_001": "all, λ = 0.001",
        },
        minutes=_MINUTES,
    ),
    Section(
        study="table3",
        title="Table 3: where",
        text=(
            "ELMo at the input of the first encoder, at its output, or at both. The paper's scores "
            "are those of development data. In SRL, ELMo at "
            "the output only has little more than the model without ELMo (35.0 with these seeds). "
            "In the paper too, it is the worst place for SRL, below its baseline."
        ),
        paper={
            "squad": ("85.1", "85.6", "84.8"),
            "snli": ("88.9", "89.5", "88.7"),
            "srl": ("84.7", "84.3", "80.9"),
        },
        paper_columns=("paper: input", "paper: both", "paper: output"),
        columns={"input": "input", "both": "both", "output": "output"},
        minutes=_MINUTES,
    ),
    Section(
        study="table4",
        title="Table 4: nearest neighbors by sense",
        text=(
            "The paper shows neighbors of one word. Here it is a measure: over 50 frequent "
            "polysemous lemmas of SemCor, the ratio of the ten nearest occurrences of the lemma "
            "that have the same sense. Random neighbors have 51.3 (`prior` in the records). The "
            "layers of both LSTMs are above that, above GloVe and above layer 0. GloVe and layer "
            "0 give all occurrences of a word form one vector, so they tell senses apart by the "
            "forms of the lemma only."
        ),
        paper={"neighbors": ()},
        paper_columns=(),
        columns=_VECTORS,
        minutes={"neighbors": 1},
    ),
    Section(
        study="table5",
        title="Table 5: word senses by the nearest vector",
        text=(
            "The senses are from SemCor. The paper's test data are four sets together, of which "
            "senseval2 is here; semeval2007 is the development data. `first sense` is that of "
            "WordNet, and `most frequent` that of SemCor. Lemmas that SemCor lacks get the first "
            "sense. Each LSTM adds to layer 0, but `mini` is not "
            "above the first sense (layer 2: \u22121.1, from \u22123.1 to 0.9), which the paper's "
            "biLM is. On semeval2007, layer 2 is 7.0 points below (48.1 and 55.2). The text of the "
            "paper's biLM is 19 times as long, and its layers are four times as large; we did not "
            "test whether this is the reason."
        ),
        paper={"wsd": ("65.9", "67.4", "69.0")},
        paper_columns=("paper: first sense", "paper: layer 1", "paper: layer 2"),
        columns={
            "first_sense": "first sense",
            "most_frequent": "most frequent",
            **_VECTORS,
        },
        minutes={"wsd": 5},
    ),
    Section(
        study="table6",
        title="Table 6: linear probes",
        text=(
            "A linear classifier on one frozen layer. The paper's parts of speech are those of the "
            "Penn Treebank; here they are those of EWT. The paper has no probe of chunks "
            "(CoNLL-2000) or of grandparent constituents (the sample of the Penn Treebank). Both "
            "LSTM layers are far above layer 0. The paper's first layer is better than its second; "
            "those of `mini` are equal within their intervals."
        ),
        paper={"pos": ("97.3", "96.8"), "chunks": ("", ""), "constituents": ("", "")},
        paper_columns=("paper: layer 1", "paper: layer 2"),
        columns=_LAYERS,
        minutes={"pos": 10, "chunks": 10, "constituents": 5},
    ),
    Section(
        study="figure2",
        title="Learning curves",
        text=(
            "Figure 1 of the published paper, which prints no numbers. Its text says that SRL with "
            "ELMo and 1 % of the data is as good as the baseline with 10 %."
        ),
        paper={"snli": (), "srl": ()},
        paper_columns=(),
        columns={"none": "without ELMo", "mini": "`mini`"},
        gain=("mini", "none"),
        minutes={"snli": 5, "srl": 6},
    ),
    Section(
        study="appendix",
        title="Depth, tuning, text of the task",
        text=(
            "BiLMs of one, two and four layers have the same number of parameters and read four "
            "million words. `tuned` trains `mini` with the task; `task text` is `mini` after one "
            "pass over the text of the task, without labels. The paper prints no such table. The "
            "runs that Table 1 has too are its seeds 1 to 3. `bilms.jsonnet` trains the other "
            "biLMs, in about 1.5 hours more. In NER, an ensemble of five seeds with `mini` (the "
            "mean of their scores) has 89.1 on the held-out data, and 90.1 on the development "
            "data; alone, the five have 85.6 ± 0.6 and 87.9 ± 0.6. They were trained "
            "again for it; `appendix.jsonnet` has the command. An ensemble in SNLI was not "
            "run (about an hour)."
        ),
        paper={"snli": (), "ner": ()},
        paper_columns=(),
        columns={
            "none": "without ELMo",
            "depth_1": "1 layer",
            "depth_2": "2 layers",
            "depth_4": "4 layers",
            "frozen": "`mini`",
            "tuned": "tuned",
            "fine_tuned": "task text",
        },
        minutes={"snli": 10, "ner": 9},
        factors={"tuned": 5.5},  # SNLI: 0.43 instead of 0.05 seconds for each update
    ),
]
