# SPDX-License-Identifier: Apache-2.0
"""What client and agent say to each other.

The client's first line is JSON: the secret and what to do. Then frames both ways: a letter, four
bytes of length, the bytes. i: input (empty: its end), s: a signal, w: the window's size;
o, e: output and errors, j: an answer in JSON, x: the exit status.
"""
import os, struct


def send_frame(sock, kind, data=b""):
    sock.sendall(struct.pack(">cI", kind, len(data)) + data)


def receive_exactly(sock, count):
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            return None
        data += piece
    return data


def receive_frame(sock):
    head = receive_exactly(sock, 5)
    if head is None:
        return None, b""
    kind, length = struct.unpack(">cI", head)
    if length > 1 << 20:
        return None, b""
    data = receive_exactly(sock, length)
    return (None, b"") if data is None else (kind, data)


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]
