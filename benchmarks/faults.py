"""Faults that someone could make, and that would change results without a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One text in a file that another takes the place of.

    Attributes:
        path: of the file, from the root of the project.
        before: what is there, once.
        after: what takes its place.
    """

    path: str
    before: str
    after: str


def _faults(path: str, *changes: tuple[str, str]) -> list[Fault]:
    return [Fault(f"elmo_framework/{path}", *change) for change in changes]


_TRAINING = [
    *_faults(
        "training/unfreezing.py",
        ("    if _trained_layers(model, trained):\n        return None\n", ""),
        ("unfreezing.layer_decay**depth", "unfreezing.layer_decay"),
        ("for parameter in layer if id(parameter) in trained_ids]", "for parameter in layer]"),
    ),
    *_faults(
        "training/trainer.py",
        ("with self.average.in_place():", "with nullcontext():"),
        (">= max(1, patience)", "> max(1, patience)"),
        ('"carried": self.model.carried_state(),', '"carried": {},'),
        ("            load_generator_states(generators)\n", ""),
        ("(is_first or progress.is_evaluation_due)", "is_first"),
        (
            "        checkpointer.finish()\n        self.group.wait()\n",
            "        checkpointer.finish()\n",
        ),
    ),
    *_faults(
        "training/update.py",
        ("self.options.grad_norm or math.inf", "math.inf"),
        ("loss if penalty is None else loss + penalty", "loss"),
        ("total / len(batches)", "total"),
        ("        self._average.update()\n", ""),
        ("        self.optimizer.zero_grad(set_to_none=True)\n", ""),
        ("self._parameters, largest_value)", "self._parameters, 1.0)"),
        ("        self.group.release()\n", ""),
    ),
    *_faults(
        "training/cuda_graph.py",
        (
            "except (RuntimeError, RunError) as error:  # of CUDA",
            "except RuntimeError as error:  #",
        ),
        ("            self._recordings.clear()  # their memory is needed now\n", ""),
        ("with torch.cuda.stream(torch.cuda.current_stream()):", "if True:"),
    ),
    *_faults(
        "training/seeds.py",
        (
            'states["cuda"] is not None and torch.cuda.is_initialized()',
            'states["cuda"] is not None',
        ),
    ),
    *_faults(
        "training/process_group.py",
        (".div_(self.rank.world_size)\n            pending", "\n            pending"),
    ),
    *_faults("training/moving_average.py", ("1 - self._decay", "self._decay")),
    *_faults(
        "experiment/config_changes.py", ("given is not None and given.get(key) is None", "False")
    ),
    *_faults(
        "training/state.py",
        ("score <= max(self.scores)", "score < max(self.scores)"),
        ("scores[metric[1:]] if metric[0] == ", "-scores[metric[1:]] if metric[0] == "),
        ("            is_evaluation_due=False,\n", ""),
    ),
    *_faults(
        "training/evaluator.py",
        ("    model.eval()\n", ""),
        (
            "with inference(model), model.fresh_state():\n            for",
            "with inference(model):\n            for",
        ),
        ("return self._group.sum(sums)", "return sums"),
        ("if all(is_done for _, is_done in statuses):", "if is_done:"),
        ("memory_errors(batch, step=None), autocast", "autocast"),
        ("if of_labels is None and not is_nearly_over_labels(name):", "if of_labels is None:"),
    ),
    *_faults(
        "training/sparse_gradients.py",
        (".clamp(max=1.0)", ""),
        ("alpha=-rate", "alpha=rate"),
        ('state["step"].to(parameter.device)', 'state["step"]'),
    ),
]
_NN = [
    *_faults(
        "nn/highway_lstm.py",
        ("reversed_rows(rows, mask) if self.is_backward else rows", "rows"),
        ("else outputs) * mask[:, :, None]", "else outputs)"),
        ("if mask is None or not self._masks_output:", "if True:"),
        ("if mask is None or not self._masks_output:", "if mask is None:"),
    ),
    *_faults(
        "nn/highway_layer.py",
        ("slice(-layer.sizes[-1]) if layer.is_backward else ", ""),
        ("    if is_needed:\n", "    if True:\n"),
        ("weights.detached(), mask", "weights, mask"),
    ),
    *_faults(
        "nn/recurrent.py",
        ("forget_gate=_FORGET_GATE,", ""),
        ("        and autocast_dtype(inputs) is None\n", ""),
        ("        and not is_traced()\n", ""),
        (" and mask.any():", ":"),
        ("            words = functional.dropout(words, network.dropout)\n", "            pass\n"),
    ),
    *_faults("nn/masking.py", (' and device.type != "cpu" and mask.all()', " and False")),
    *_faults("nn/spans.py", ("range(min(length, max_width))", "range(max_width)")),
    *_faults(
        "kernels/lstm_step.c",
        ("            d = reaches(c1[k], limit) ? 0.0f : d;\n", ""),
        ("dc[k] = d * f;", "dc[k] = d;"),
        ("d * i * (1.0f - j * j)", "d * i * (1.0f - j)"),
        ("d * i * (1.0f - j * j)", "0.5f * d * i * (1.0f - j * j)"),
        ("clipped(f * c0[k] + i * j, limit)", "f * c0[k] + i * j"),
    ),
    *_faults(
        "kernels/highway_step.c",
        ("of_memory[k] = d * f;", "of_memory[k] = d;"),
        ("(o * outer - carried[k])", "(o * outer)"),
        ("of_output[k] - of_cell;", "of_output[k];"),
        (
            "out[k] += mask ? of_hidden[at + k] * mask[at + k] :",
            "out[k] += mask ? of_hidden[at + k] :",
        ),
    ),
    *_faults(
        "kernels/gated_scan.c",
        ("of_state[k] = d * f;", "of_state[k] = d;"),
        (
            "d * (before[k] - g[size + k]) * f * (1.0f - f) : 0.0f",
            "d * before[k] * f * (1.0f - f) : 0.0f",
        ),
        ("f * (1.0f - f) : 0.0f", "f * (1.0f - f) : d"),
        ("s * (1.0f + o * (1.0f - s))", "s"),
        ("start + size * row;", "start;"),
        ("return first + CHANNELS < size ? first + CHANNELS : size;", "return size;"),
    ),
    *_faults(
        "kernels/gated_scan.py",
        ("not is_traced() and ", ""),
        (" or len(start) != is_word.shape[1]", ""),
    ),
    *_faults(
        "nn/linear_recurrence.py",
        ("is_word = is_word.contiguous()", "pass"),
        ("of_outputs.contiguous()", "of_outputs"),
    ),
    *_faults("kernels/packed_product.py", ('"int8, a scale per row"', '"int8"')),
    *_faults("embedding/embed.py", ("ARITHMETIC[job.precision]", "job.precision")),
    *_faults("layers/shared_source.py", (", uses_cpu_code(device), ", ", ")),
    *_faults("layers/word_vector_cache.py", ("padding = bytes(size)", "padding = bytes()")),
    *_faults(
        "io/process.py",
        ("    atexit.register(_freeze)\n", ""),
        ('if "triton" not in sys.modules:', "if True:"),
    ),
    *_faults("serve/server.py", ("TCP_NODELAY, 1)", "TCP_NODELAY, 0)")),
    *_faults("serve/worker.py", ("or self._is_closed)", "or self._is_closed, 9.0)")),
    *_faults(
        "kernels/character_maxima.c",
        ("ids[t] < 0 || ids[t] >= num_ids", "0"),
        (" | (sum[v] != sum[v])", ""),
        ("last + 1, ids", "last, ids"),
        ("length - b->width < ends[word] ? length - b->width : ends[word]", "ends[word]"),
        ("(ids[t + j] * width + j)", "(ids[t + j] * width)"),
    ),
    *_faults("kernels/character_maxima.py", ("added[:, 0] += bias", "added[:] += bias")),
    *_faults(
        "nn/frozen_lstm.py",
        ("[_GATES.to(weight.device)]", ""),
        ("(num_directions, _CELLS) if first else (1, _INPUTS)", "(num_directions, _CELLS)"),
        ("len(states), rows.shape[2] // len(states))", "1, rows.shape[2])"),
        ("        if network.proj_size:\n            return None\n", ""),
    ),
    *_faults(
        "encoders/lstm.py",
        ("self._frozen is not None and not self.training", "self._frozen is not None"),
        ("not self.training and not torch.is_grad_enabled()", "not self.training"),
        ('masks_output=recurrent_dropout_place == "output",\n                use_', "use_"),
    ),
    *_faults("serve/served_run.py", ("freeze_parts(self.run.model,", "(self.run.model,")),
    *_faults(
        "serve/served_encoder.py",
        ('"<f4").tobytes()', '"<f4").tobytes("F")'),
        ("self.num_layers(request) * pooled_dim", "pooled_dim"),
        ('len(words) if request.pool == "none" else 1', "len(words)"),
    ),
    *_faults(
        "nn/char_cnn.py",
        ("self._frozen is not None and not torch.is_grad_enabled()", "self._frozen is not None"),
    ),
    *_faults("kernels/window_maxima.py", ("-len(rows) % _STEP_OF_WINDOWS", "0")),
    *_faults(
        "kernels/prebuilt.py",
        ("if level.flags <= flags)", "if True)"),
        ('_AVX512 | {"avx512_bf16", "avx512_vnni"}', "_AVX512"),
    ),
    *_faults("kernels/compiler.py", ("if path := prebuilt_file(", "if path := bool(")),
    *_faults(
        "kernels/packed.h",
        ("                if (p->first)\n", "                if (0)\n"),
        ("w->bias && p->end == p->depth", "w->bias"),
        ("p->first ? (whole){0} : ((const whole *)offsets)[v]", "((const whole *)offsets)[v]"),
        ("largest = bits > largest ? bits : largest;", "largest = bits;"),
        ("(uint8_t)(bits + 128)", "(uint8_t)bits"),
    ),
    *_faults(
        "kernels/blocked_product.c",
        ("            if (first)\n", "            if (0)\n"),
        ("if (p->bias && end == all)", "if (p->bias)"),
        ("if (2 * k + 1 < inputs)", "if (1)"),
        ("    if (number % 2)\n        narrow[number] = 0;\n", ""),
        ("first : first * GROUP", "first : first"),
        ("multiply(p, row, rows, packed, 1, GROUP,", "multiply(p, row, rows, packed, GROUP, 1,"),
    ),
    *_faults(
        "kernels/blocked_product.c",
        ("else if (width > GROUP - 2 * LANES)", "else if (0)"),
        ("else if (width > GROUP - LANES)", "else if (0)"),
    ),
    *_faults(
        "kernels/highway_layer.c",
        ("l->is_backward ? l->num_steps - 1 - number : number", "number"),
        ("        begin(l, next, kept);\n", ""),
        ("            memset(sums, 0, 4 * now.rows * l->width);\n", "            ;\n"),
        ("of_carried ? of_carried + first : 0", "of_carried"),
    ),
    *_faults(
        "kernels/training_layer.c",
        ("output[k] = clipped(output[k], l->hidden_limit);", ";"),
        ("(first - l->sizes[t - 1])", "(first - rows)"),
        ("of_output[k] + of_hidden[k];", "of_output[k];"),
        ("fabsf(output[k]) >= l->hidden_limit ? 0.0f : sum", "0 ? 0.0f : sum"),
        ("        memory = after;\n", ""),
    ),
    *_faults(
        "kernels/window_gradients.c",
        ("to[k] += factor * from[k];", "to[k] = factor * from[k];"),
        ("                            inputs + (row * steps +", "inputs + (row +"),
    ),
    *_faults(
        "kernels/lstm_stack.c",
        ("direction ? length - 1 - t : t;", "t;"),
        ("if (layer && s->has_skip)", "if (layer)"),
        ("low < -limit ? -limit : low", "low"),
        ("s->order + first, s->lengths + first", "s->order, s->lengths"),
    ),
    *_faults("nn/elmo_lstm.py", ("(copied(hidden), ", "(hidden, ")),
    *_faults(
        "kernels/lstm_step.py",
        ("inner = inner.masked_fill(after.abs() >= cell_clip, 0)", "pass"),
        ("of_memory.copy_(inner * f)", "of_memory.copy_(inner)"),
    ),
    *_faults(
        "kernels/adagrad.py",
        ("gradient / scale for", "gradient for"),
        ("alpha=weight_decay", "alpha=-weight_decay"),
    ),
    *_faults(
        "kernels/log_sum_exp.py",
        (".mul_(gradient[:, None])", ""),
        ("targets[:, None] == ids", "targets[:, None] == ids - 1"),
        ("targets[part]", "targets[: part.stop - part.start]"),
    ),
    *_faults(
        "kernels/operators.py",
        ("tensor.dtype == torch.float64", "tensor.dtype == torch.float16"),
    ),
    *_faults(
        "kernels/window_maxima.py",
        (".max(dim=1) for piece", ".min(dim=1) for piece"),
        ("+= of_windows[..., offset]", "= of_windows[..., offset]"),
    ),
    *_faults(
        "nn/crf.py",
        ("total[:, :, None] + transitions", "total[:, :, None] + transitions.T"),
        ("torch.where(is_word[:, None], extended, total)", "extended"),
        ("self.transitions + self.inner_constraint", "self.transitions"),
    ),
    *_faults(
        "nn/sampled_softmax.py",
        ("bias = bias - expected", "bias = bias"),
        ("        _ignore_hits(logits, targets, ids)\n", ""),
        ("num_samples + repeats", "num_samples + 0 * repeats"),
    ),
    *_faults(
        "nn/highway.py",
        ("torch.lerp(inputs, transformed,", "torch.lerp(transformed, inputs,"),
    ),
    *_faults(
        "nn/row_wise.py",
        ("missing = -dim % _VECTORS", "missing = 0"),
        ("padded.numel() < _ONE_THREAD", "True"),
    ),
    *_faults("bilm/layer_mix.py", ("return gamma * mixed", "return mixed")),
    *_faults("nn/elmo_lstm.py", ("(2 * size, size)", "(size, 2 * size)")),
    *_faults(
        "nn/elmo_lstm.py",
        ("self.use_skip_connections and layer > 0", "self.use_skip_connections"),
    ),
    *_faults(
        "nn/masking.py",
        ("len(inputs), 1, inputs", "len(inputs), inputs.shape[1], inputs"),
    ),
]
_BILM = [
    *_faults("bilm/layer_output.py", ("vectors[:, 1:-1]", "vectors[:, :-2]")),
    *_faults(
        "bilm/bilm.py",
        ("(steps == lengths[:, None] + 1)", "(steps == lengths[:, None])"),
    ),
    *_faults("bilm/layer_output.py", ("vectors[:, 1:-1]", "vectors[:, :-2]")),
    *_faults(
        "bilm/context_layers.py",
        ("turned = reversed_rows(words, on_device)", "turned = words"),
        (
            'if direction == "forward" else self.backward_lstm',
            "if direction else self.backward_lstm",
        ),
        (
            "cell_clip: Annotated[float, Gt(0)] | None = 3.0",
            "cell_clip: Annotated[float, Gt(0)] | None = None",
        ),
    ),
    *_faults("bilm/layer_mix.py", ("self._l2 * sum(", "0 * sum(")),
    *_faults("bilm/token_encoder.py", ("(6, 512), (7, 1024)]", "(6, 1024), (7, 512)]")),
]
_DATA = [
    *_faults(
        "data/data_loader.py",
        ("return joint[rank.index :: rank.world_size]", "return joint"),
        ("return padded[rank.index :: rank.world_size]", "return padded"),
        ("[self._context.seed, epoch]", "[self._context.seed, 0]"),
    ),
    *_faults(
        "data/characters.py", ("np.uint8).astype(np.int64) + 1", "np.uint8).astype(np.int64)")
    ),
    *_faults(
        "data/batch.py",
        ("numbers=numbers.pin_memory()", "numbers=numbers"),
        ("_mapped(batch, Tensor.pin_memory)", "batch"),
    ),
    *_faults("data/vocabulary.py", ("(-pair[1], pair[0])", "(pair[1], pair[0])")),
    *_faults(
        "data/tagging.py",
        ('"BUS" or previous.prefix in "OULSE"', '"BUS" or previous.prefix in "O"'),
        ("-([^-].*)", "-(.+)"),
    ),
]
_METRICS = [
    *_faults(
        "metrics/coreference.py",
        ("for name in _AVERAGED) / 3", "for name in _AVERAGED) / 2"),
        ("2 * size / (len(cluster) + len(response[other]))", "size / len(cluster)"),
    ),
    *_faults("metrics/ratios.py", ("2 * precision * recall", "precision * recall")),
    *_faults(
        "metrics/squad.py",
        ("max((_overlap(", "min((_overlap("),
        ("if gold else (-1.0, -1.0)", "if gold else (0.0, 0.0)"),
        ("if answer] or [", "] or ["),
    ),
    *_faults(
        "metrics/thresholds.py",
        ("is_better = total > best", "is_better = total >= best"),
        ("for index in sorted(gains)", "for index in gains"),
        ("bisect_left(THRESHOLDS, p", "bisect_right(THRESHOLDS, p"),
    ),
    *_faults("metrics/srl.py", ('frozenset({"V"})', "frozenset()")),
]
_TASKS = [
    *_faults(
        "tasks/tagging/ontonotes_reader.py",
        ("sentence.document_id.startswith(_WITHOUT_ENTITIES)", "False"),
    ),
    *_faults(
        "tasks/coreference/reader.py",
        ('string_of(values, "genre") if "genre" in values else ', ""),
    ),
    *_faults("tasks/word_senses/reader.py", ('"targets" not in values and ', "")),
    *_faults(
        "tasks/coreference/mentions.py",
        ("self._spans_per_word * sum(lengths)", "2 * self._spans_per_word * sum(lengths)"),
        ('masked_fill(~windows.inside.flatten(), float("-inf"))', "clone()"),
        ("np.sort(selected)", "selected"),
        ("words.encoded.index_select(0, starts + widths)", "words.encoded.index_select(0, starts)"),
        (
            'if self._attention_reads == "encoder" else words.embedded',
            "if True else words.embedded",
        ),
        ("if self._crossing_spans:", "if False:"),
    ),
    *_faults(
        "tasks/coreference/example.py",
        ("rows * num_tokens + tokens", "rows + tokens"),
        ("batch.offsets[rows] + tokens", "tokens"),
        ("_firsts(lengths)[row] + first", "_firsts(lengths)[row]"),
        ("documents=self.documents[rows]", "documents=self.documents[: len(rows)]"),
    ),
    *_faults(
        "tasks/coreference/span_ranker.py",
        ("ends = places[spans.starts + spans.widths]", "ends = places[spans.starts]"),
        ("row[: len(words)] for row", "row for row"),
    ),
    *_faults("tasks/question_answering/bidaf.py", ("| None = 17", "| None = 18")),
    *_faults(
        "tasks/question_answering/answer_head.py",
        ("first + max_length", "first + max_length + 1"),
        ("torch.where(has_answer, target, output.no_answer_logits)", "target"),
        ("probability > _THRESHOLD", "probability < _THRESHOLD"),
        ("_ACCURACIES, float(prediction.is_no_answer)", "_ACCURACIES, 1.0"),
    ),
    *_faults(
        "tasks/question_answering/no_answer.py",
        ("self.attention(states).squeeze(2)", "starts[1]"),
        ("torch.relu(self.hidden(", "(self.hidden("),
    ),
    *_faults("tasks/question_answering/reader.py", ("answers=())", "answers=None)")),
    *_faults(
        "tasks/language_modeling/bi_language_model.py",
        ("loss=num_steps * (", "loss=("),
        ("(forward + backward) / 2", "forward"),
        ("self._states[direction] = tuple(", "tuple("),
    ),
    *_faults("tasks/language_modeling/windows.py", ("self.rank.index * size", "0 * size")),
]
_EMBEDDERS = [
    *_faults(
        "embedders/elmo.py",
        ("            self.source.module.eval()\n", "            pass\n"),
        ("            carried.keep(outputs[-1].state)", "            pass"),
    ),
    *_faults("model/classifier.py", ("indexers, num_groups=len(groups))", "indexers)")),
    *_faults(
        "tasks/question_answering/answer_head.py",
        (
            "question, passage = self._read(batch.question), self._read(batch.passage)",
            "passage, question = self._read(batch.passage), self._read(batch.question)",
        ),
    ),
    *_faults(
        "tasks/srl/semantic_role_labeler.py",
        ("text, rows = text.rows(rows), torch.arange(len(rows), device=rows.device)", "pass"),
    ),
    *_faults(
        "tasks/coreference/span_ranker.py",
        ("            text, packed = document_text(batch, packed)", "            pass"),
    ),
    *_faults(
        "embedders/embedding.py",
        ("projected: Tensor = self.projection(embedded)", "projected: Tensor = embedded"),
        ("return projected * text.mask[:, :, None]", "return projected"),
    ),
]

_ENCODERS = _faults(
    "encoders/matrix_attention.py",
    ("1 / sqrt(dim)", "1 / dim"),
    ("(_normalized(rows), _normalized(columns))", "(_normalized(rows), columns)"),
    ("dot_products(rows @ self.weight, columns)", "dot_products(rows @ self.weight.T, columns)"),
    ("lengths + _TINY", "lengths"),
)
_COMPAT = [
    *_faults(
        "compat/allennlp/language_models.py",
        ("    if value != 1:", "    if False:"),
        ('renamed("layer_norm")', 'dropped("")'),
        ("max(1, tokens // _UNROLL_STEPS)", "tokens // _UNROLL_STEPS"),
        ('_boundary("<S>")', 'dropped("")'),
        ('if loader.get("shuffle") is False:', "if False:"),
    ),
    *_faults("compat/bilm_tf.py", ('"lstm", "n_epochs"', '"lstm", "batches"')),
    *_faults(
        "compat/allennlp/recognize.py",
        ("any(key in own for key in _OURS)", "False"),
    ),
    *_faults(
        "compat/allennlp/expressions.py",
        ("    if value in ([], {}):\n", "    if False:\n"),
        ("value is None or value == []", "value is None"),
        ('"regularizer": ("regexes",)', '"regularizer": ("regexes", "prevent_regexes")'),
    ),
    *_faults(
        "compat/allennlp/parameter_groups.py",
        ("    if value == []:", "    if False:"),
        ("if each[1] and each[1] != _FROZEN]", "if each[1]]"),
    ),
    *_faults(
        "training/parameter_groups.py",
        ("(matching[0] if matching else rest)", "rest"),
        ("        if len(places) > 1:\n", "        if False:\n"),
    ),
    *_faults(
        "compat/allennlp/batches.py",
        ("        if is_language_model(here.context):", "        if False:"),
    ),
    *_faults(
        "compat/allennlp/rules.py", ("truncated(json.dumps(value))", "truncated(repr(value))")
    ),
    *_faults(
        "compat/allennlp/embedders.py",
        (
            "is_refused = name not in here.context.indexers and here.context.missing",
            "is_refused = False",
        ),
    ),
    *_faults(
        "compat/allennlp/recognize.py",
        ('_WEIGHTS = (WEIGHTS_NAME, "best.th")', "_WEIGHTS = (WEIGHTS_NAME,)"),
    ),
    *_faults(
        "commands/allennlp_flags.py",
        ("num_places == _COMMAND_AND_FOLDER", "num_places"),
    ),
    *_faults("tasks/srl/example.py", ("    if not (predicates or forms):\n", "    if False:\n")),
    *_faults(
        "model/weights.py",
        ("EOFError, ValueError, LookupError, TypeError)", "EOFError, ValueError, TypeError)"),
    ),
    *_faults(
        "config/load.py", ('lines += [f"    also undefined: ', 'others += [f"    also undefined: ')
    ),
    *_faults(
        "analysis/run_table.py",
        ("(imported if run.weights.is_file() else unfinished)", "unfinished"),
    ),
    *_faults(
        "bilm/files/load.py",
        (
            "path for path in paths if not path.is_file()",
            "path for path in paths[::-1] if not path.is_file()",
        ),
    ),
    *_faults(
        "modules/scalar_mix.py",
        ("[float(weight) for weight in initial_scalar_parameters]", "[*initial_scalar_parameters]"),
    ),
    *_faults(
        "commands/command.py",
        (
            "        from elmo_framework.compat.bilm_tf import refuse_options\n",
            "        from elmo_framework.compat.allennlp import translate  # noqa: F401\n"
            "        from elmo_framework.compat.bilm_tf import refuse_options\n",
        ),
    ),
    *_faults(
        "commands/evaluate.py",
        ("        if self.batch_size is None:\n", "        if True:\n"),
    ),
    *_faults(
        "data/data_loader.py",
        (
            "resized.max_tokens = batch_size, None",
            "resized.max_tokens = batch_size, self.max_tokens",
        ),
    ),
    *_faults(
        "compat/allennlp/load.py",
        ("    files += [] if weights is None else [weights]\n", ""),
        ("[*serialized_files(archive).values()] or [archive]", "[archive / 'config.json']"),
    ),
    *_faults(
        "compat/allennlp/archive.py",
        ("and published_name(places) is None:", "and False:"),
        ("    ).overridden(overrides)\n", "    )\n"),
        ("    if run.config.is_file() and not force:\n", "    if False:\n"),
        (
            "        if not any(name.startswith(_VOCABULARY) for name in files):\n",
            "        if False:\n",
        ),
        ('listed if name == "labels" else listed[1:]', "listed[1:]"),
    ),
    *_faults(
        "compat/allennlp/namespaces.py",
        ("        names |= OF_READERS.get(kind, {})\n", ""),
        ("{} if kind in _WITHOUT_LABELS else", "{} if False else"),
        (' and not character_tokenizer(indexer).get("byte_encoding")', ""),
        ('str(indexer.get("namespace") or _OF_CHARACTERS)', "_OF_CHARACTERS"),
        ("        if names != {value}:\n", "        if False:\n"),
        ('each.get("trainable") is False', "True"),
    ),
    *_faults(
        "compat/allennlp/translate.py",
        ("rule(here, left) if left else {}", "rule(here, left)"),
        ("            if name not in counted:\n", "            if False:\n"),
        ('            here.note("dropped", "it is empty")\n', "            pass\n"),
        ("dict.fromkeys(ours, value)", '{"words": value}'),
        ('"val": -1.0', '"val": 1.0'),
    ),
    *_faults(
        "compat/allennlp/schedulers.py",
        ("    if value == trained:", "    if True:"),
        ('elif here.context.value("iterator") is None:', "elif False:"),
    ),
    *_faults(
        "compat/allennlp/models.py",
        ('            each["cache"] = "none"', "            pass"),
        ('            "embedder_reads": "document",\n', ""),
    ),
    *_faults(
        "compat/allennlp/exported_models.py",
        ("if any(isinstance(each, ElmoTokenEmbedder)", "if not any(isinstance(each, nn.Module)"),
    ),
    *_faults(
        "compat/allennlp/tensors.py",
        ("for each in (a, c, b))", "for each in (a, b, c))"),
        ("return torch.cat([first, second, third, fourth])", "return every"),
        ('sorted(dims, key="elmo".__eq__)', "sorted(dims)"),
    ),
    *_faults(
        "compat/allennlp/exported_tensors.py",
        (
            "[input_gate, forget_gate, memory, output_gate,",
            "[input_gate, memory, forget_gate, output_gate,",
        ),
        ("return torch.cat([transform, -carry])", "return torch.cat([transform, carry])"),
        ("tensor[:, order.argsort()]", "tensor"),
        ("min(len(weights[state]), _NUM_OF_STATE * hidden)", "len(weights[state])"),
    ),
    *_faults(
        "compat/allennlp/exported_embedders.py",
        ("(module.indexer.vocabulary), *unseen.rows]", "(module.indexer.vocabulary)]"),
        ("table[[*range(1 + _NUM_BYTES), begin, end]] = own", "table[: len(own)] = own"),
        ('expressible("carry", reason=', 'expressible("carry", "reset", reason='),
        ('"case_fallback": expressible(False)', '"case_fallback": kept'),
    ),
    *_faults(
        "compat/allennlp/exported_elmo.py",
        ("np.pad(table, ((1, 0), (0, 0)))", "table"),
    ),
    *_faults(
        "compat/allennlp/export.py",
        ("(crf.inner_constraint == 0).float()", "1"),
        ("(crf.start_constraint == 0).float()", "1"),
        ("weights[INPUT_WEIGHT][:, input_columns(model).argsort()]", "weights[INPUT_WEIGHT]"),
    ),
    *_faults(
        "compat/allennlp/exported_models.py",
        ('"crossing_spans": (True, "its spans may cross")', '"crossing_spans": (False, "")'),
        ('"decoder": expressible("softmax")', '"decoder": kept'),
        ('if model.scheme == "BIOES":', "if False:"),
    ),
    *_faults(
        "tasks/srl/summed_decoding.py",
        ("sums[_START] = _FIRST_SUM", "sums[_START] = 0"),
        ("start.masked_fill(start < 0, _NEVER)", "torch.zeros_like(start)"),
    ),
    *_faults(
        "tasks/srl/semantic_role_labeler.py",
        ('if self._decoding == "probabilities":', "if False:"),
        ('if self._predicate_words == "tagged":', "if False:"),
        ('if self._loss_reduction == "mean":', "if False:"),
    ),
    *_faults(
        "compat/allennlp/layers.py",
        ('"use_input_biases": only(False)', '"use_input_biases": kept'),
        ('        {"combination": "x,y"},\n', ""),
        ('    "boe": _BAG,\n', ""),
        ('ours.get("num_layers", 1) == 1', 'ours.get("num_layers") == 1'),
        ('renamed("matrix_2_dim")', "kept"),
    ),
    *_faults(
        "compat/allennlp/parameter_names.py",
        ('yield from _attention_names(model, "matrix_attention")', "pass"),
        (
            'yield f"_elmo.{theirs}", ours\n    yield from _projected(values)',
            'yield f"_elmo.{theirs}", ours',
        ),
        (
            '("_matrix_attention", "_matrix_attention._similarity_function")',
            '("_matrix_attention",)',
        ),
        ('(f"{of_theirs}_{layer}", f"{of_theirs}_{layer}.cell")', '(f"{of_theirs}_{layer}.cell",)'),
        ('"_mention_pruner._scorer.1._module"', '"_mention_pruner._scorer.2._module"'),
    ),
    *_faults(
        "compat/allennlp/readers.py",
        ('if isinstance(ours, dict) and ours["type"] == "add_tokens":', "if False:"),
        ('return {"type": "add_tokens", "tokenizer": inner, **added}', "return inner"),
        ('    "num_workers": _SPEED,\n', ""),
    ),
    *_faults(
        "compat/allennlp/embedders.py",
        ("amazonaws\\.com/.*/", "amazonaws\\.com/models/.*/"),
        ('if ours.get("requires_grad") is not True', "if False"),
    ),
    *_faults(
        "compat/allennlp/training.py",
        ('    if here.key != "keep_most_recent_by_count":\n', "    if True:\n"),
        ('return {"device": "auto"}', 'return {"device": "cuda"}'),
    ),
]

_CONFIG = [
    *_faults(
        "config/arguments.py",
        ('else {"action": "append"}', 'else {"nargs": "+"}'),
        ("field.default_factory()", "None"),
        ("argument.group or argument.excludes", "argument.group"),
    ),
    *_faults(
        "config/docstrings.py",
        ("(*reversed(component_class(component).__mro__), component)", "(component,)"),
    ),
]

_ANALYSIS = [
    *_faults(
        "analysis/statistics.py",
        (
            "np.maximum.accumulate(np.array(p_values)[order] * factors)",
            "np.array(p_values)[order] * factors",
        ),
        ("_widening(self.num_groups) * (means - value)", "(means - value)"),
        ("part.shrinkage * _widening(num_runs)", "_widening(num_runs)"),
    ),
    *_faults("study/report_parts.py", ("(cell + mark, reason), []", '(cell + mark, ""), []')),
    *_faults(
        "study/state.py",
        ("return is_written_alike or is_moved(", "return is_moved("),
        ("folder.read_digests() if record is None", "{} if record is None"),
        ("name not in self.running and self.folder", "self.folder"),
    ),
    *_faults("study/results.py", ("record.trial is None and not is_known", "not is_known")),
    *_faults(
        "experiment/run_directory.py",
        ("settle_checkpoints(self.checkpoints)\n", "pass\n"),
        ("places.count(path.resolve())", "paths.count(path)"),
    ),
    *_faults("training/process_group.py", ("index >= world_size", "index > world_size")),
    *_faults(
        "study/reuse.py",
        ("            and self._content(run).is_of(record)\n", ""),
        ("self.data == list(record.digests", "set(self.data) == set(record.digests"),
        ("self.data == list(record.digests", "self.data or not list(record.digests"),
        ("not self.has_initial_weights\n            and", ""),
        ("change[0] in self._content(run).keys", "isinstance(change[1], str)"),
        ("change[0] in self._content(run).keys", "False"),
        ("if not _is_lacking(state, self.run):", "if False:"),
        ("if own.test is not None or not self._needs_test(run)", "if True"),
        ("record.test if is_same_test and", "record.test if"),
        ("is_same_test and self._needs_test(run) else", "is_same_test else"),
        ('record.origin is not None and state.state(run) == "unscored"', "False"),
        ('["validation", "test"] if has_test else', '["validation", "test"] if True else'),
        ("run.plan.seed == record.seed\n            and not record.is_pruned", "True"),
        ('origin=record.origin or f"', 'origin=f"'),
    ),
]

_EDGES = [
    *_faults("layers/layer_source.py", ("num_long = sum(", "num_long = 0 * sum(")),
    *_faults("layers/cache/shards.py", ("rounded.dtype == torch.float16 and", "False and")),
    *_faults(
        "analysis/statistics.py",
        ("np.ptp(deviations) > _TIE", "False"),
        ("p if is_defined else None", "p"),
        ("np.isfinite(value) and np.isfinite(resampled).all()", "np.isfinite(value)"),
    ),
    *_faults("data/sentences.py", ('b"lengths" if is_ambiguous', 'b"" if is_ambiguous')),
    *_faults("io/archives.py", ('            and member["bytes"] >= 0\n', "")),
    *_faults("embedding/vector_reader.py", ("if self._is_narrow and not", "if False and not")),
    *_faults("embedding/json_lines.py", (" and line.number > 1", "")),
    *_faults("embedding/corpus.py", (" or line.number == 1", "")),
    *_faults("embedding/arrow_files.py", ("-(2**63) <= value < 2**63", "True")),
    *_faults(
        "nn/lstm_layer.py",
        ("        of_outputs = of_outputs.contiguous()  # kernels read its memory\n", ""),
        (
            "gradient.contiguous().clone()\n            for gradient, state in zip(",
            "gradient.clone()\n            for gradient, state in zip(",
        ),
    ),
    *_faults(
        "training/cuda_graph.py",
        ("                _end_recording_of_random_numbers()\n", ""),
        ('update.device.type == "cuda" and is_allowed', 'update.device.type == "cuda"'),
        ("failure = failure or error", "failure = error"),
    ),
    *_faults("training/optimizer.py", (" and parameter.is_contiguous()", "")),
    *_faults("nn/highway.py", ("rows = rows.to(self.weight.dtype)", "rows = rows")),
    *_faults("kernels/character_maxima.py", ("if ids.shape[1] < (width :=", "if 0 > (width :=")),
    *_faults("kernels/operators.py", ("if not has_kernel(*arguments):", "if False:")),
    *_faults("commands/allennlp_flags.py", (" and before not in _WITHOUT_VALUES", "")),
]

FAULTS: Sequence[Fault] = (
    *_TRAINING,
    *_NN,
    *_BILM,
    *_DATA,
    *_METRICS,
    *_TASKS,
    *_EMBEDDERS,
    *_ENCODERS,
    *_COMPAT,
    *_CONFIG,
    *_ANALYSIS,
    *_EDGES,
)
