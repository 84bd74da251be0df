package codec

import (
	"bytes"
	"encoding/binary"
	"hash"
	"strings"
)

// positive is the mask with which Java makes a hash non-negative. Sarama and Goka take the absolute value instead,
// which differs for half of all keys, so the hash they get is masked already.
const positive = 0x7fffffff

// KeyHasher returns the hasher of Kafka's Java producer, for goka.WithHasher, goka.WithEmitterHasher, goka.WithViewHasher
// and sarama.NewCustomHashPartitioner: murmur2 of the key's bytes, with the sign bit cleared. The key ends at its first NUL
// byte, so that the parts of a key (key, NUL, number) stay on the key's partition.
//
// The returned function is safe for concurrent use; the hashers that it returns are not.
func KeyHasher() func() hash.Hash32 {
	return func() hash.Hash32 { return &keyHasher{} }
}

// PartitionOf returns the partition that a producer with KeyHasher chooses for a key. For a key without NUL bytes, Java
// producers choose the same one. It returns -1 if partitions is not positive.
func PartitionOf(key string, partitions int32) int32 {
	if partitions <= 0 {
		return -1
	}
	if end := strings.IndexByte(key, 0); end >= 0 {
		key = key[:end]
	}
	return int32(murmur2(key)&positive) % partitions
}

// keyHasher collects the key: murmur2 starts from the length.
type keyHasher struct {
	key   []byte
	ended bool
}

func (h *keyHasher) Write(p []byte) (int, error) {
	if !h.ended {
		part, _, ended := bytes.Cut(p, []byte{0})
		h.key, h.ended = append(h.key, part...), ended
	}
	return len(p), nil
}

func (h *keyHasher) Sum32() uint32 { return murmur2(h.key) & positive }

func (h *keyHasher) Sum(b []byte) []byte { return binary.BigEndian.AppendUint32(b, h.Sum32()) }

func (h *keyHasher) Reset() { h.key, h.ended = h.key[:0], false }

func (h *keyHasher) Size() int { return 4 }

func (h *keyHasher) BlockSize() int { return 4 }

// murmur2 is the 32-bit MurmurHash2 with the seed that Kafka uses.
func murmur2[K ~string | ~[]byte](key K) uint32 {
	const (
		seed = 0x9747b28c
		mul  = 0x5bd1e995
		rot  = 24
	)
	h := seed ^ uint32(len(key))
	i := 0
	for ; i+4 <= len(key); i += 4 {
		k := uint32(key[i]) | uint32(key[i+1])<<8 | uint32(key[i+2])<<16 | uint32(key[i+3])<<24
		k *= mul
		k ^= k >> rot
		h = h*mul ^ k*mul
	}
	switch len(key) - i {
	case 3:
		h ^= uint32(key[i+2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[i+1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(key[i])) * mul
	}
	h ^= h >> 13
	h *= mul
	return h ^ h>>15
}
