// The LSTM of the paper in the size of `mini`: 4,734,976 parameters in its context layers. The other
// configs of this folder are compared with it; experiments/README.md has the commands.
//
//   elmo prepare data/lm/shards/lm-0{00,04,08,12,16,20,24,28}.txt data/lm/extra/masc.txt \
//     --output-dir data/corpus/today --held-out 5000 --max-vocabulary-size 20000 --pieces 8000
//   elmo train experiments/pretrain/today/lstm.jsonnet -s runs/today/lstm
import '../../lib/today.libsonnet'
