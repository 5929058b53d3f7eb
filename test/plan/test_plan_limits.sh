#!/bin/sh
# quern plan: what cannot be done as it is asked for, and how that is said.
set -u
. "${0%/*}/expect.sh"
need_yaml

# lacks TEXT: the command before did not say it
lacks()
{
    grep -qF -- "$1" "$out" && { echo "it says '$1':"; head -5 "$out"; failed=1; }
}

# ---- precisions that a device or a stack does not have ----

expect 0 "T4      its data sheet has no rate for fp8" resnet50 --precision fp8 --gpu "T4,L4" --batch 8
expect 2 '"error": "T4: its data sheet has no rate for tf32"' resnet50 --precision tf32 --gpu "T4" \
    --json
expect 0 "no rate for int8" resnet50 --task infer --precision int8 --gpu "P100 SXM2,T4" --batch 8
expect 2 "no device here can do it; --precision auto" resnet50 --precision fp8 --gpu T4
lacks "nothing fits"
expect 4 "error: T4: its data sheet" resnet50 --precision fp8 --explain T4
expect 2 "nothing trains in it" resnet50 --precision int8 --gpu T4
expect 2 "pytorch runs no nets of images in it" resnet50 --task infer --stack pytorch \
    --precision fp8 --gpu "L4"
expect 0 "take T4" resnet50 --task infer --stack tensorrt --precision int8 --gpu T4 --batch 8
expect 0 "take L4" bert_large --task infer --stack compiled --precision fp8 --gpu L4 --batch 8
expect 2 "nothing trains in it" cluster llama2_7b --gpu "A100 SXM4 80GB" --precision int8 --gpus 8
expect 2 "no rate for fp8" cluster llama2_7b --gpu "A100 SXM4 80GB" --precision fp8 --gpus 8
expect 0 "fp8" cluster llama2_7b --gpu "H100 SXM5 80GB" --precision fp8 --gpus 8

# ---- a budget for a device is not one for a job ----

expect 0 "take " edge mobilenet_v2 --latency 20 --budget 500 --stack tensorrt
expect 2 "within all limits" edge mobilenet_v2 --latency 20 --budget 5
expect 0 "paid back in" upgrade resnet50 --from "RTX 3060" --budget 1000
expect 2 "--budget needs the size of the job" resnet50 --budget 500

# ---- published figures of one's own ----

# table LINES...: a file of them
table()
{
    printf '%s\n' "$@" >"$dir/own.csv"
}
head=model,task,gpu,precision,throughput,unit
table "$head" "resnet50,train,T4,fp16-amp,300,img/s"
expect 0 "1 of 1 rows expressed" --score "$dir/own.csv"
expect 2 "'resnet50' beside --score" resnet50 --score "$dir/own.csv"
table "$head" "resnet5O,train,T4,fp16-amp,300,img/s" "resnet50,train,RTX 4O90,fp16-amp,300,img/s" \
    "resnet50,train,T4,fp16_anp,300,img/s"
expect 0 "no builder for this model; did you mean 'resnet50'?" --score "$dir/own.csv"
lacks "mean    0.0"
expect 0 "did you mean 'RTX 4090'?" --score "$dir/own.csv"
expect 0 "did you mean 'fp16-amp'?" --score "$dir/own.csv"
expect 0 '"nearest": "RTX 4090"' --score "$dir/own.csv" --json
table "model,task,gpu,model,precision,throughput,unit"
expect 2 "two columns are called 'model'" --score "$dir/own.csv"
table "model,gpu,unit" "a,b,c"
expect 2 "the header lacks task, precision, throughput;" --score "$dir/own.csv"
table "$head,seq_or_res,framework" "llama2_7b,infer,A100 SXM4 80GB,fp16,900,tok/s,in512/out128,TensorRT-LLM"
expect 0 "1 of 1 rows expressed" --score "$dir/own.csv"
table "$head"
expect 2 "no rows below the header" --score "$dir/own.csv"

# ---- a batch that cannot be divided ----

set_of="cluster llama2_7b --gpu"
expect 2 "--batch 4104 for 9 devices, or --gpus 8" $set_of "H100 SXM5" --gpus 9,13 --batch 4096
expect 2 "--batch 100000 for 100000 devices, or --gpus 4096" $set_of "H100 SXM5" --gpus 100000 --batch 4096
lacks "nothing fits"
expect 2 "it would on" cluster gpt3_175b --gpu "A100 SXM4 80GB" --gpus 7,8
sed 's/batch: .*/batch: 48/' recipes/breast-cancer.yaml >"$dir/r.yaml"
expect 0 "48 examples a step" cluster "$dir/r.yaml" --gpu T4
lacks "no layout divides"
expect 0 "16  DP16" cluster "$dir/r.yaml" --gpu T4

# ---- devices of one's own ----

head=name,vendor,arch,year,class,mem_gb,mem_bw_gbs,fp32_tflops,source
table "$head" "Mine,V,A,2020,edge,8,100,2,s"
expect 0 "1 device, every row checked" devices --check "$dir/own.csv"
expect 0 "take Mine" resnet18 --devices "$dir/own.csv" --gpu Mine
table "$head" "RTX 4090,V,A,2020,edge,8,100,2,s"
expect 2 "'RTX 4090' is in the catalogue already" devices --check "$dir/own.csv"
table "$head" "Mine:2,V,A,2020,edge,8,100,2,s"
expect 2 "a ':' in a name" devices --check "$dir/own.csv"

# ---- the page of --html with --explain is of one device ----

"$quern" plan resnet50 --samples 1.28M --explain "RTX 4090" --html "$dir/x.html" >"$out" 2>&1
cp "$dir/x.html" "$out"
grep -q "<h2>RTX 4090, explained</h2>" "$out" || { echo "the page is not of what it explains"; failed=1; }
grep -q "Recommended of all devices is " "$out" || { echo "no recommendation"; failed=1; }
lacks "<h2>Take "
"$quern" plan resnet50 --samples 1.28M --explain T4 --gpu T4 --html "$dir/t4.html" >"$out" 2>&1
grep -q "<h2>Take T4</h2>" "$dir/t4.html" || { echo "what is explained and recommended is not taken"; failed=1; }

# ---- names of devices and options as they are mistyped ----

expect 2 "the name of a device is missing" resnet50 --gpu "T4,"
expect 2 "the name of a device is missing" resnet50 --gpu "T4,,L4"
expect 2 "no text in UTF-8" resnet50 --gpu "$(printf '\377\376RTX')"
expect 0 "T4:8 " resnet50 --batch 8 --gpu " T4:8 , L4"
expect 2 "did you mean 'RTX 4090:8'?" resnet50 --gpu "8xRTX 4090"
expect 2 "did you mean 'RTX 4090:8'?" resnet50 --gpu "RTX 4090 x8"
expect 2 "did you mean 'RTX 4090:2'?" resnet50 --explain "2x RTX 4090"
expect 0 "2x Xeon" resnet50 --batch 8 --gpu "2x Xeon E5-2630 v3"
expect 2 '--gpu "T4" --gpus 8' cluster resnet50 --gpu "T4:8"
expect 2 "no option --taks; did you mean --task?" resnet50 --taks infer
"$quern" plan resnet50 --batch 8 --gpu "RTX 4090,rtx4090,T4,RTX 4090" --csv >"$out"
[ "$(grep -c 'RTX 4090' "$out")" = 1 ] || { echo "one device stands there more than once"; failed=1; }

# ---- money that is not known, or guessed ----

expect 2 "--hourly: expected an amount above 0" resnet50 --gpu T4 --hourly 0
expect 2 "--price: expected an amount above 0" resnet50 --gpu T4 --price T4=0
expect 0 "own" resnet50 --batch 8 --gpu T4 --buy --residual 1
expect 0 "its rent is not known: --hourly" break-even --gpu "T4,RTX 3060"
expect 0 '"error": "its rent is not known: --hourly"' break-even --gpu "T4,RTX 3060" --json
expect 0 "RTX 3060 12GB,1,658," break-even --gpu "T4,RTX 3060" --csv
expect 2 "of none of these devices" break-even --gpu "RTX 3060"
expect 0 " as a guess: --resale USD" upgrade resnet50 --batch 8 --from "RTX 3060" --gpu "RTX 4090"
expect 0 "sold for 100 USD" upgrade resnet50 --batch 8 --from "RTX 3060" --gpu "RTX 4090" --resale 100
lacks "as a guess"

# ---- a recipe whose data are not here ----

cat >"$dir/photos.yaml" <<END
task: classify
data: {format: folder, train: not-here, images: {resize: 64, crop: 56}}
model: {name: resnet, depth: 18}
train: {epochs: 4, batch: 32, lr: 0.1}
END
expect 2 "; and --samples N for the time and cost" "$dir/photos.yaml"
expect 2 "give --classes N" "$dir/photos.yaml" --samples 5k
lacks "and --samples"
expect 0 "; --samples N gives the time and cost" "$dir/photos.yaml" --classes 2 --gpu T4
expect 0 "its data set is not here" "$dir/photos.yaml" --classes 2 --gpu T4 --samples 5k
lacks "--samples N"
expect 2 "give --classes N" cluster "$dir/photos.yaml" --gpu T4
lacks "--samples"

exit $failed
