TP=2
GPUS=${GPUS:-8}  # a node
ARGS=(
    --num-layers 4 --hidden-size 64
    --num-attention-heads 4
    --tokenizer-model "$TOKENIZER"
)
MORE="--tensor-model-parallel-size $TP \
    --seq-length 128 --vocab-size 1000 --lr 1.5e-4"
torchrun --nproc_per_node $GPUS train.py ${ARGS[@]} $MORE --swiglu --global-batch-size=16
