# SPDX-License-Identifier: Apache-2.0
"""Who says what to whom, in the order of time."""
from drawn.canvas import sequence


def a_call():
    return sequence("An allReduce of host memory, with its threads", ["program's thread", "communicator's thread", "other ranks"], [
        (0, "gdrxAllReduce(..., &request): checks the arguments,\nposts the call, returns at once"),
        (0, "The tuner picks an algorithm, alike on every rank"),
        (0, 2, "call signature: what this rank calls,\nin each message and in the arena"),
        (0, "gdrxWait or gdrxTest steps the execution;\na step never waits"),
        (0, 2, "messages, or stores to shared memory"),
        (2, 0, "what the others send"),
        (1, "Nobody steps it for 10 ms: this thread does,\nso that no peer is held back"),
        (1, 2, "messages, while the program computes"),
        (2, 1, "the others' messages"),
        (0, "gdrxWait returns: the output is complete"),
        "if a rank dies instead:",
        (2, 1, "told over the control mesh"),
        (1, "The communicator fails: the error names the rank"),
        (0, "gdrxWait returns gdrxPeerLost"),
    ], apart=270)


def clear_to_send():
    return sequence("A message of the NCCL plugin: clear to send comes first", ["sender: NCCL's isend", "receiver: NCCL's irecv"], [
        (1, 0, "handle, carried by NCCL:\naddress of a listening socket, key"),
        (0, 1, "side channel, TLS: hello\n(address of the device context, key of the clear-to-send ring)"),
        (1, 0, "welcome (address of the device context, key of the receive ring)"),
        (0, 1, "first immediate, over the fabric"),
        (1, 0, "ring: ready"),
        "connect() and accept() give communicators",
        (1, "irecv: up to 8 receives are one group"),
        (1, 0, "ring[n]: the group's sizes and tags: clear to send"),
        (0, "isend finds its tag in a group"),
        (0, 1, "receive ring: head and up to 128 KiB, with immediate"),
        (0, 1, "receive ring: the next chunk"),
        (1, "copies to NCCL's buffer, in order"),
        (1, 0, "ring: chunks consumed, their room is free"),
        "test() says done, on both sides",
    ], apart=420)


def a_rail_fails():
    return sequence("A rail fails while a message is under way", ["rank 0", "rank 1"], [
        "addresses of each port went through the bootstrap",
        (0, 1, "datagram: hello (port pair, epoch 1, QPs, credits), repeated"),
        (1, 0, "hello (ready), then ready and up"),
        (0, 1, "rail 0: SEND envelope (message 7, 2 stripes)"),
        (0, 1, "rail 0: WRITE with immediate, stripe 0"),
        (0, 1, "rail 1: WRITE with immediate, stripe 1", "lost"),
        (0, "retry exceeded: rail 1 is quiesced.\nQPs to error, drained, destroyed"),
        (0, 1, "datagram over every rail: quiesced\n(port pair 1, epoch 1, received n)"),
        (1, "the same: its QPs end"),
        (1, 0, "quiesced (answer, received m)"),
        (0, "The first m fragments landed, the others did not"),
        (0, 1, "rail 0: WRITE with immediate, stripe 1"),
        (1, "delivers message 7, once"),
        (0, 1, "hello (port pair 1, epoch 2, new QPs),\nonce the port is active, with back-off"),
    ], apart=420)
