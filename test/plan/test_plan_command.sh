#!/bin/sh
# quern plan: recipes and ONNX files as its subject, money, limits, and its commands; what it writes
# as a recipe is trained.
# timeout: 300
set -u
. "${0%/*}/expect.sh"
need_yaml

# ---- recipes ----

awk 'BEGIN { print "a,b,c,y"; for (i = 0; i < 100; i++) printf "%d,%d,%d,%d\n", i % 7, i % 5, i % 3, i % 2 }' \
    >"$dir/data.csv"
cat >"$dir/small.yaml" <<END
name: small
task: classify
data: {format: csv, train: data.csv, target: y}
model: {name: mlp, hidden: [16]}
train: {epochs: 3, batch: 10, lr: 0.01, precision: bf16}
END
sed 's/data.csv/gone.csv/' "$dir/small.yaml" >"$dir/gone.yaml"
cat >"$dir/photos.yaml" <<END
name: photos
task: classify
data: {format: folder, train: not-here, images: {resize: 64, crop: 56}}
model: {name: resnet, depth: 18}
train: {epochs: 4, batch: 32, accumulate: 2, lr: 0.1, optimizer: sgd}
END

expect 0 "240 examples in 3 epochs" "$dir/small.yaml" --gpu T4
expect 0 "fp32" "$dir/small.yaml" --gpu "GTX 1080 Ti" --precision auto
expect 0 '"precision": "bf16-amp", "batch": 10' "$dir/small.yaml" --gpu "RTX 4090" --json
expect 2 "takes no tokens" "$dir/small.yaml" --sequence 5
expect 2 "takes no images" "$dir/small.yaml" --image 5
expect 0 '"batch": 64,' "$dir/small.yaml" --batch auto --gpu T4 --json
expect 2 "only the data set says how many features" "$dir/gone.yaml"
expect 2 "give --classes N, the number of its classes" "$dir/photos.yaml"
expect 0 "its data set is not here" "$dir/photos.yaml" --classes 10 --gpu T4
expect 0 "32 x 2" "$dir/photos.yaml" --classes 10 --gpu T4
expect 2 "give --samples N" "$dir/photos.yaml" --classes 10 --budget 10
expect 0 "20.0 k images in 4 epochs" "$dir/photos.yaml" --classes 10 --gpu T4 --samples 5k
# two threads of the loader at 250 pictures a second are slower than the device
expect 0 "limited by loader" "$dir/photos.yaml" --classes 10 --gpu "RTX 4090"
expect 2 "No such file" "$dir/nothing.yaml"

# A recipe counts as the model that has the same layers; what is known of that model besides, by
# published figures, moves its speed a little.
sed 's/resize: 64, crop: 56/resize: 256, crop: 224/; s/accumulate: 2, //
s/optimizer: sgd/optimizer: {name: sgd, momentum: 0.9}/; s/depth: 18/depth: 18, small: false/' \
    "$dir/photos.yaml" >"$dir/resnet18.yaml"
# figure KEY ARGS...: of the first device
figure()
{
    key=$1
    shift
    "$quern" plan "$@" --gpu "RTX 4090" --workers 1000 --json |
        sed -n "1s/.*\"$key\": \([0-9.]*\).*/\1/p"
}
for key in weights_bytes optimizer_bytes activations_bytes throughput; do
    recipe=$(figure $key "$dir/resnet18.yaml" --classes 1000)
    model=$(figure $key resnet18 --batch 32 --precision fp32)
    awk -v a="$recipe" -v b="$model" -v part="$([ $key = throughput ] && echo 1.15 || echo 1.02)" \
        'BEGIN { exit !(a > 0 && a < part * b && b < part * a) }' ||
        { echo "resnet18 as a recipe: $key $recipe, by name: $model"; failed=1; }
done

# What it writes, quern train takes, and runs a step of it.
expect 0 "wrote $dir/fast.yaml" "$dir/small.yaml" --gpu "RTX 4090" --batch 5 --accumulate 2 \
    --write-recipe "$dir/fast.yaml"
grep -q "batch: 5" "$dir/fast.yaml" && grep -q "accumulate: 2" "$dir/fast.yaml" &&
    grep -q "precision: bf16" "$dir/fast.yaml" || { echo "fast.yaml:"; cat "$dir/fast.yaml"; failed=1; }
"$quern" train "$dir/fast.yaml" -o "$dir/run" --set train.epochs=1 >"$out" 2>&1 ||
    { echo "quern train $dir/fast.yaml:"; tail -5 "$out"; failed=1; }
expect 0 "wrote $dir/tf.yaml" "$dir/small.yaml" --gpu "RTX 3090:4" --precision tf32 --recompute \
    --write-recipe "$dir/tf.yaml"
grep -q "^# Data parallel over 4 devices" "$dir/tf.yaml" && grep -q "^# Products in TF32" "$dir/tf.yaml" &&
    grep -q "memory_budget_mib" "$dir/tf.yaml" || { echo "tf.yaml:"; cat "$dir/tf.yaml"; failed=1; }
"$quern" train "$dir/tf.yaml" -o "$dir/run2" --set train.epochs=1 >"$out" 2>&1 ||
    { echo "quern train $dir/tf.yaml:"; tail -5 "$out"; failed=1; }
# What it prints as a command runs as it stands.
"$quern" plan "$dir/small.yaml" --gpu "RTX 4090" --batch 16 --accumulate 3 >"$out" 2>&1
line=$(sed -n 's/^  quern train //p' "$out")
[ "$line" = "$dir/small.yaml --set train.batch=16 train.accumulate=3 train.precision=bf16" ] ||
    { echo "the command is: $line"; failed=1; }
"$quern" train $line -o "$dir/run5" >"$out" 2>&1 || { tail -5 "$out"; failed=1; }
# A model by name: the text is trained on at a size that is quick.
yes 'to be, or not to be' | head -50 >"$dir/text.txt"
expect 0 "wrote $dir/gpt.yaml" gpt2 --gpu "RTX 4090" --batch 2 --sequence 16 --tokens 64 \
    --data "$dir/text.txt" --write-recipe "$dir/gpt.yaml"
"$quern" train "$dir/gpt.yaml" -o "$dir/run3" --set model.layers=1 model.width=24 model.heads=2 \
    train.precision=fp32 >"$out" 2>&1 || { echo "quern train gpt.yaml:"; tail -5 "$out"; failed=1; }
expect 0 "wrote $dir/resnet.yaml" resnet18 --gpu "RTX 4090" --batch 64 --write-recipe "$dir/resnet.yaml"
expect 2 "recipes have no model 'alexnet' by name" alexnet --gpu T4 --write-recipe "$dir/no.yaml"
expect 2 "for training" resnet18 --task infer --gpu T4 --write-recipe "$dir/no.yaml"

# ---- ONNX files ----

"$quern" export "$dir/run" -o "$dir/small.onnx" >"$out" 2>&1 || { tail -3 "$out"; failed=1; }
expect 0 "small.onnx, inference" "$dir/small.onnx" --gpu T4
expect 0 "small.onnx, training" "$dir/small.onnx" --gpu T4 --task train --batch 8
expect 2 "no open dim of the model" "$dir/small.onnx" --dim nothing=3
expect 2 "of an ONNX file a recipe is needed" "$dir/small.onnx" --task train --gpu T4 \
    --write-recipe "$dir/no.yaml"
cat >"$dir/onnx.yaml" <<END
task: classify
data: {format: csv, train: data.csv, target: y}
model: small.onnx
train: {epochs: 1, batch: 10, lr: 0.01}
END
expect 0 "wrote $dir/again.yaml" "$dir/onnx.yaml" --gpu T4 --write-recipe "$dir/again.yaml"
"$quern" train "$dir/again.yaml" -o "$dir/run4" >"$out" 2>&1 ||
    { echo "quern train again.yaml:"; tail -5 "$out"; failed=1; }
echo nonsense >"$dir/broken.onnx"
expect 2 "broken.onnx" "$dir/broken.onnx"

# ---- money and limits ----

job="resnet18 --samples 1.28M --epochs 2"
expect 0 "own" $job --gpu "RTX 4090" --buy
expect 0 "rent" $job --gpu "RTX 4090"
expect 0 '"usd_per_hour": 2.5' $job --gpu "RTX 3060,RTX 4090" --hourly "RTX 4090=2.5" --json
expect 0 "electricity 0.3 USD a kWh at the plug, PUE 1.5" $job --gpu T4 --electricity 0.3 --pue 1.5
expect 2 "--rent and --buy" $job --rent --buy
expect 2 "--pue: expected 1 to 10" $job --pue 0.5
expect 2 "--years: expected a number such as" $job --years soon
expect 2 "RTX 9" $job --gpu "RTX 4090" --hourly "RTX 9=1"
expect 0 "each device held to" $job --gpu "RTX 4090" --power 500
expect 2 "--power" $job --gpu "RTX 4090" --power 10
expect 2 "would do (RTX 4090:8)" $job --gpu "RTX 4090" --deadline 10s
expect 0 "likely to meet the deadline" $job --gpu "RTX 4090,H100 SXM5" --deadline 7m
expect 0 "no single device is within all limits" $job --gpu "RTX 4090" --deadline 4m
expect 2 "--deadline: expected a time" $job --deadline 3h2d
expect 2 "--budget: expected a number above 0" $job --budget 0
expect 2 "--sort: expected best" $job --sort beauty
expect 2 "--json and --csv" $job --json --csv
"$quern" plan $job --csv >"$out"
lines=$(wc -l <"$out") cells=$(awk -F, 'NR == 1 { print NF }' "$out")
[ "$lines" -ge 140 ] && [ "$cells" -ge 28 ] || { echo "CSV: $lines lines of $cells cells"; failed=1; }
"$quern" plan $job --sort cost --csv | awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) { if ($i == "usd") u = i; if ($i == "fits") f = i } next }
    $f == "true" && $u > 0 { if ($u + 0 < last) bad = 1; last = $u } END { exit bad }' ||
    { echo "--sort cost is not in order"; failed=1; }
COLUMNS=60 "$quern" plan $job >"$out" 2>&1
awk 'NR > 1 && /%/ && length > 62 && !/:/ { exit 1 }' "$out" || { echo "wider than 60 columns"; failed=1; }
expect 2 "with each step shared by 8 of them" llama2_70b --task infer --generate 10 --precision fp16 --gpu "RTX 4090"
expect 2 "the layers in order on them" llama2_70b --task infer --generate 10 --precision fp16 --gpu "RTX 4090" --stack llama.cpp
expect 2 '"remedy": "the optimizer in the host' gpt2_xl --batch 4 --gpu "RTX 4090" --json
expect 0 "wrote $dir/micro.yaml" resnet50 --batch 512 --gpu "GTX 1080 Ti" --write-recipe "$dir/micro.yaml"
grep -q "accumulate: [2-9]" "$dir/micro.yaml" || { cat "$dir/micro.yaml"; failed=1; }
expect 2 "nothing fits. What would" gpt2_xl --batch 4 --gpu "RTX 4090"
expect 2 "optimizer shared among them" gpt2_xl --batch 4 --gpu "RTX 4090"

expect 0 "the first token after" llama2_7b --task infer --generate 64 --gpu "RTX 4090" --precision fp16
expect 0 '"token_ms"' llama2_7b --task infer --generate 64 --prompt 32 --batch 1 --gpu "RTX 4090" --json
expect 0 "fp16 w4.85" llama2_70b --task infer --generate 64 --batch 1 --gpu "A100 SXM4 80GB" --precision q4_K_M
expect 2 "with int4" llama2_70b --task infer --generate 64 --batch 1 --gpu "A100 SXM4 40GB" --precision fp16
expect 2 "are for --task infer" llama2_7b --precision int4
expect 2 "--generate is for --task infer" llama2_7b --generate 64
expect 2 "does not answer token by token" resnet50 --task infer --generate 64
expect 2 "--prompt needs --generate" llama2_7b --task infer --prompt 64
expect 0 "under tensorrt" resnet50 --task infer --framework "TensorRT 8.6" --gpu T4

# ---- commands ----

expect 0 "paid back in" upgrade resnet50 --from "RTX 3060" --resale 100
expect 0 "RTX 3060 12GB" upgrade resnet50 --from "RTX 3060" --gpu "RTX 4090"
expect 0 '"payback_hours"' upgrade resnet50 --from "RTX 3060" --json
expect 2 "say which device is there" upgrade resnet50
expect 2 "did you mean" upgrade resnet50 --from "RTX 3O60"
expect 0 "does not fit" upgrade gpt2_xl --batch 1 --from "RTX 3060" --gpu "B200"
expect 0 "2569     7.0  2026-08-0" break-even --gpu "RTX 4090" --price 1599 --hourly 0.69 --host 1 \
    --residual 0 --pue 1 --start 2026-01-01
expect 0 "cheaper for this job" break-even resnet50 --samples 1e6
expect 2 "both rent and price" break-even --gpu "GTX 1080"
expect 2 "--start: expected a day" break-even --start 2026-02-30
expect 0 "take Jetson Nano" edge resnet18 --fps 5
expect 0 '"frames_per_joule"' edge resnet18 --json
expect 0 "a frame is a token" edge llama2_7b --generate 32 --precision int4 --gpu "AGX Orin 64GB"
expect 2 "the fastest is" edge resnet18 --latency 0.0001
expect 2 "fits into none" edge gpt3_175b --gpu "Jetson Nano"
"$quern" docs quern.1 | grep -q "plan upgrade" || { echo "no plan upgrade in the manual"; failed=1; }
for command in devices models upgrade break-even edge; do
    expect 0 "Examples:" $command --help
done
exit $failed
