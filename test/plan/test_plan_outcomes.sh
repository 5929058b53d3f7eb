#!/bin/sh
# quern plan: what it writes and refuses to write over, what is not known, and its exit codes.
# timeout: 300
set -u
. "${0%/*}/expect.sh"
need_yaml
source=$1

# absent TEXT: the last output has no such line.
absent()
{
    ! grep -qF -- "$1" "$out" || { echo "there should be no '$1':"; head -20 "$out"; failed=1; }
}

# ---- files ----

awk 'BEGIN { print "a,b,y"; for (i = 0; i < 60; i++) printf "%d,%d,%d\n", i % 7, i % 5, i % 2 }' \
    >"$dir/data.csv"
cat >"$dir/small.yaml" <<END
name: small # a comment
task: classify
data: {format: csv, train: data.csv, target: y}
model: {name: mlp, hidden: [16]}
train: {epochs: 1, batch: 10, lr: 0.01}
END
cp "$dir/small.yaml" "$dir/copy.yaml"
ln -s small.yaml "$dir/link.yaml"
small="$dir/small.yaml --gpu T4"
expect 2 "is what is planned for" $small --write-recipe "$dir/small.yaml"
expect 2 "is what is planned for" $small --write-recipe "$dir/link.yaml" --force
expect 2 "is what is planned for" $small --html "$dir/./small.yaml" --force
expect 2 "copy.yaml is there already; --force replaces it" $small --write-recipe "$dir/copy.yaml"
expect 2 "copy.yaml is there already; --force replaces it" $small --html "$dir/copy.yaml"
cmp -s "$dir/small.yaml" "$dir/copy.yaml" || { echo "a refused file was changed"; failed=1; }
expect 0 "wrote" $small --write-recipe "$dir/copy.yaml" --force
cmp -s "$dir/small.yaml" "$dir/copy.yaml" && { echo "--force does not replace"; failed=1; }

ln -s copy.yaml "$dir/to-copy.yaml"
expect 0 "wrote" $small --write-recipe "$dir/to-copy.yaml" --force --batch 7
[ -L "$dir/to-copy.yaml" ] && grep -q "batch: 7" "$dir/copy.yaml" || { echo "a link is replaced"; failed=1; }

# As spreadsheets write it: a mark of UTF-8, and carriage returns.
as_spreadsheets_do()
{
    printf '\357\273\277'
    sed 's/$/\r/'
}
head -3 "$source/plan/devices.csv" | sed '2,$s/^/My /' | as_spreadsheets_do >"$dir/devices.csv"
expect 0 "2 devices, every row checked" devices --check "$dir/devices.csv"
as_spreadsheets_do >"$dir/times.csv" <<END
gpu,num_gpus,bytes,time_ns,busbw_gbs,what,source
H100 SXM5 80GB,8,1073741824,4000000,470,,
END
expect 0 "H100 SXM5 80GB" --score "$dir/times.csv"

# A file whose shapes hold a batch of one: what cannot be asked of it is left out.
yes 'to be, or not to be' | head -50 >"$dir/text.txt"
cat >"$dir/text.yaml" <<END
task: language
data: {format: text, train: text.txt, window: 16, bytes: true}
model: {name: gpt2, layers: 1, width: 24, heads: 2}
train: {steps: 1, batch: 2, lr: 0.01, precision: fp32}
END
"$quern" train "$dir/text.yaml" -o "$dir/run" >"$out" 2>&1 &&
    "$quern" export "$dir/run" --batch 1 -o "$dir/one.onnx" >"$out" 2>&1 ||
    { tail -3 "$out"; failed=1; }
expect 0 "what would change it" "$dir/one.onnx" --batch 1 --explain T4
absent "batch 2"
expect 2 "one.onnx hold a batch of 1 alone" "$dir/one.onnx" --batch 2 --gpu T4

# ---- what is not known ----

expect 0 '"usd_per_hour": null' resnet50 --gpu B300 --json
absent '"usd_per_hour": 0'
expect 0 '"usd": null' resnet50 --gpu B300 --samples 1e6 --json
"$quern" plan resnet50 --gpu B300 --samples 1e6 --csv >"$out" 2>&1
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "usd" || $i == "usd_per_hour") c[i] = 1; next }
    { for (i in c) if ($i != "") exit 1 }' "$out" || { echo "an unknown price in CSV is not empty"; failed=1; }
expect 0 '"cloud_usd_per_hour": null' devices B300 --json
expect 0 '"outlay_usd"' resnet50 --gpu "RTX 4090" --buy --samples 1e6 --json
"$quern" plan cluster llama2_7b --gpu B300 --gpus 64 --csv >"$out" 2>&1
grep -q ',,$' "$out" || { echo "cluster: time and price without a job are not empty"; head -2 "$out"; failed=1; }

"$quern" plan devices --csv >"$out" 2>&1
awk -F, 'NR == 1 { n = NF } END { exit !(NR > 100 && n > 15) }' "$out" || { echo "devices --csv"; head -2 "$out"; failed=1; }
grep -q "^name,vendor," "$out" || { echo "devices --csv has no header"; failed=1; }
expect 0 "name,family,params_m" models resnet50 --csv
expect 0 '"name": "resnet50"' models resnet50 --json

# What cannot be written to stdout is an error in every command.
full=/dev/full
[ -c "$full" ] || { full=$dir/full && mknod "$full" c 1 7 2>/dev/null; }
if [ -c "$full" ]; then
    for command in devices models "edge resnet18" break-even "resnet50 --gpu T4" \
        "upgrade resnet50 --from T4" "cluster resnet50 --gpu T4 --gpus 8" "--score $dir/times.csv"; do
        "$quern" plan $command >"$full" 2>"$out"
        got=$?
        [ "$got" = 1 ] && grep -q "cannot write" "$out" ||
            { echo "quern plan $command to a full device: exit $got"; failed=1; }
    done
fi

# ---- what fits, and what is within the limits ----

for command in plan "plan cluster"; do
    "$quern" $command --help | grep -q "Exit code 2 where nothing fits" ||
        { echo "$command --help says nothing of exit codes"; failed=1; }
done
expect 2 "gpt3_175b does not fit as asked" gpt3_175b --gpu "RTX 3060"
expect 2 'quern plan cluster gpt3_175b --gpu "RTX 3060' gpt3_175b --gpu "RTX 3060"
expect 2 "no: " gpt3_175b --gpu "RTX 3060"
expect 0 "quern plan cluster llama2_7b" llama2_7b
expect 0 "sequences of 512" gpt2 --gpu "RTX 4090" --sequence 512
expect 2 "--batch 8197 for 7 devices" cluster resnet50 --gpu "V100 SXM2 16GB" --gpus 7,13
absent "nothing fits"
expect 0 "years" resnet50 --samples 1e12 --epochs 1000 --gpu T4
absent "-1"
expect 0 "take" edge resnet18 --gpu "Jetson Nano,Jetson Orin Nano 8GB" --budget 600
expect 0 "gain" upgrade resnet50 --from "RTX 3060" --budget 5000

# Nothing that may not fit is recommended where something else does, or chosen by --batch auto.
tight()
{
    "$quern" plan "$@" --json | awk '/"best":/ { next } /"fits": true/ {
        match($0, /"memory_high_bytes": [0-9.e+]*/); high = substr($0, RSTART + 21, RLENGTH - 21)
        match($0, /"room_bytes": [0-9.e+]*/); room = substr($0, RSTART + 14, RLENGTH - 14)
        match($0, /"batch": [0-9]*/); batch = substr($0, RSTART + 9, RLENGTH - 9)
        if (high > room && batch > 1) n++ } END { print n + 0 }'
}
[ "$(tight llama2_7b)" = 0 ] || { echo "--batch auto takes what may not fit"; failed=1; }
expect 0 "take MI300X" llama2_7b --tokens 300e9 --gpu "Gaudi3,MI300X"
expect 0 "its memory is tight" llama2_7b --tokens 300e9 --gpu "Gaudi3" --batch 1

# A purchase is paid at once: that is what a budget is compared with.
expect 2 "no device is within all limits; --budget" resnet50 --samples 1e6 --gpu "RTX 4090" --buy --budget 100
expect 0 "to pay at once" resnet50 --samples 1e6 --gpu "RTX 4090" --buy --budget 10k

# With a loader that is too slow all batches are equal, but for what another host would do.
cat >"$dir/photos.yaml" <<END
task: classify
data: {format: folder, train: not-here, images: {resize: 64, crop: 56}}
model: {name: resnet, depth: 18}
train: {epochs: 1, batch: 32, lr: 0.1}
END
photos="$dir/photos.yaml --classes 2 --samples 5000 --batch auto --gpu"
expect 0 "the loader limits it: 2 threads prepare 500" $photos "RTX 3060"
batch=$(sed -n 's/^  with: batch \([0-9]*\).*/\1/p' "$out")
[ "$batch" -ge 32 ] || { echo "--batch auto with a slow loader: $batch"; failed=1; }
needed=$(sed -n 's/.*(--workers \([0-9]*\) here.*/\1/p' "$out")
expect 0 "take" $photos "RTX 3060" --workers "$needed"
absent "the loader limits"

# ---- what is over a limit, and more than the work is worth ----

job="resnet50 --samples 1.28M --epochs 90"
"$quern" plan $job --gpu "RTX 4090,H100 SXM5" --deadline 12h >"$out" 2>&1
grep -q "^RTX 4090 .*h[0-9]*m ! " "$out" && grep -q "^H100 .*h[0-9]*m   " "$out" ||
    { echo "no mark:"; head -4 "$out"; failed=1; }
expect 0 "!: over the limit" $job --gpu "RTX 4090,H100 SXM5" --deadline 12h
expect 0 "take" $job --gpu "H100 SXM5" --deadline 12h
absent "!: over the limit"
expect 0 '"within_limits": false' $job --gpu "RTX 4090,H100 SXM5" --deadline 12h --json
expect 0 '"within_limits": true' $job --gpu "RTX 4090,H100 SXM5" --deadline 12h --json
expect 0 '{"type": "advice"' $job --gpu "H100 SXM5" --json
grep -q '_bytes": [0-9]*\.' "$out" && { echo "parts of bytes"; failed=1; }
expect 2 "--power" upgrade resnet50 --from "RTX 3060" --gpu "RTX 4090" --power 100
expect 2 "--budget" upgrade resnet50 --from "RTX 3060" --gpu "RTX 4090" --budget 10
expect 2 "!" edge resnet18 --gpu "Jetson Orin Nano 8GB" --fps 1e6
expect 0 '"within_limits": true' edge resnet18 --gpu "Jetson Orin Nano 8GB" --json
expect 0 "a single one is as fast" bert_large --batch 8 --gpu "RTX 4090:8"
expect 0 "the data set has 1000" resnet50 --samples 1000 --batch 256 --gpu "H100 SXM5:8"
expect 0 "it does not fit: it takes" gpt3_175b --explain T4
expect 2 "cannot be both" resnet50 --gpu T4 --html "$dir/both" --write-recipe "$dir/both"

set_of="cluster gpt2_xl --gpu T4 --gpus 8,16 --tokens 10G"
expect 0 "DP: data parallel" $set_of
expect 2 "--budget 5" $set_of --budget 10
absent "e+0"
expect 2 "--budget" $set_of --buy --budget 1000
expect 0 "to pay at once" $set_of --buy --budget 1M
expect 2 "times what it has, mostly weights" edge gpt3_175b --gpu "Jetson Nano"
expect 0 "weights of 4.85 bits" llama2_7b --task infer --generate 8 --precision q4_K_M --gpu "RTX 4090"
expect 0 "ms (" edge gpt2 --gpu "Jetson Nano"
absent "e+03"

expect 0 "the cheapest, however long it takes (--deadline)" resnet50 --samples 1.28M --epochs 90
expect 0 "take" resnet50 --samples 1.28M --epochs 90 --gpu "H100 SXM5"
absent "however long"
expect 0 '"tight": true' llama2_7b --gpu Gaudi3 --batch 1 --json
expect 0 '"tight": false' resnet18 --gpu T4 --batch 1 --json

# ---- narrow tables ----

COLUMNS=80 "$quern" plan resnet50 --samples 1.28M --epochs 90 >"$out" 2>&1
grep -q "^device .*batch.*cost" "$out" || { echo "80 columns:"; head -3 "$out"; failed=1; }
awk '/^device / { table = 1 } /^$/ { table = 0 } table && length > 83 { exit 1 }' "$out" ||
    { echo "wider than 80 columns"; failed=1; }
COLUMNS=60 "$quern" plan resnet50 --gpu "Apple M2 Ultra" --samples 1e6 >"$out" 2>&1
grep -q "^Apple M2 Ultra.*cannot\|^Apple M2 Ultra.*[….]" "$out" || { head -4 "$out"; failed=1; }
# Lines are folded at words; what is to be copied is not.
COLUMNS=60 "$quern" plan llama2_7b --tokens 1e9 --gpu "H100 SXM5,T4,V100" >"$out" 2>&1
awk 'length > 60 && !/ quern / && !/%/ && !/ no: / { print; bad = 1 } END { exit bad }' "$out" ||
    { echo "wider than 60 columns"; failed=1; }
COLUMNS=60 "$quern" plan llama2_7b --tokens 1e9 --gpu "H200 SXM,T4" | tr -s ' \n' ' ' >"$out.folded"
COLUMNS=999 "$quern" plan llama2_7b --tokens 1e9 --gpu "H200 SXM,T4" | tr -s ' \n' ' ' >"$out"
folded=$(sed 's/.*take //' "$out.folded") whole=$(sed 's/.*take //' "$out")
[ "$folded" = "$whole" ] || { echo "folding changes words:"; echo "$folded"; echo "$whole"; failed=1; }
exit $failed
