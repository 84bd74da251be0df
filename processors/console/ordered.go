package console

import "slices"

// chunkLimit is how many items a chunk of a list has at most, one less than its memory. An insertion moves half of them.
const chunkLimit = 511

// ordered is a sorted list in chunks: an insertion and a removal take some microseconds with millions of items. An item's place must
// not change while it is in the list. It is not safe for concurrent use.
type ordered[T any] struct {
	compare func(a, b T) int // 0 for the same item only
	chunks  [][]T            // none is empty
	n       int
}

// find returns where an item is, or would be.
func (o *ordered[T]) find(v T) (chunk, at int, found bool) {
	chunk, _ = slices.BinarySearchFunc(o.chunks, v, func(c []T, v T) int { return o.compare(c[len(c)-1], v) })
	if chunk == len(o.chunks) {
		return chunk, 0, false
	}
	at, found = slices.BinarySearchFunc(o.chunks[chunk], v, o.compare)
	return chunk, at, found
}

func (o *ordered[T]) add(v T) {
	chunk, at, found := o.find(v)
	if found {
		return
	}
	o.n++
	if chunk == len(o.chunks) {
		if chunk == 0 {
			o.chunks = append(o.chunks, append(make([]T, 0, chunkLimit+1), v))
			return
		}
		chunk--
		at = len(o.chunks[chunk])
	}
	c := slices.Insert(o.chunks[chunk], at, v)
	if o.chunks[chunk] = c; len(c) <= chunkLimit {
		return
	}
	half := len(c) / 2
	if chunk == len(o.chunks)-1 && at == len(c)-1 { // items that come in order fill their chunks
		half = len(c) - 1
	}
	o.chunks = slices.Insert(o.chunks, chunk+1, append(make([]T, 0, chunkLimit+1), c[half:]...))
	clear(c[half:])
	o.chunks[chunk] = c[:half]
}

func (o *ordered[T]) remove(v T) {
	chunk, at, found := o.find(v)
	if !found {
		return
	}
	o.n--
	c := slices.Delete(o.chunks[chunk], at, at+1)
	if o.chunks[chunk] = c; len(c) == 0 {
		o.chunks = slices.Delete(o.chunks, chunk, chunk+1)
	}
}

// from passes the items from a place on to take until it returns false. A nil place is the beginning.
func (o *ordered[T]) from(place *T, take func(T) bool) {
	chunk, at := 0, 0
	if place != nil {
		chunk, at, _ = o.find(*place)
	}
	for ; chunk < len(o.chunks); chunk, at = chunk+1, 0 {
		for _, v := range o.chunks[chunk][at:] {
			if !take(v) {
				return
			}
		}
	}
}

// back passes the items from the last one on to take until it returns false.
func (o *ordered[T]) back(take func(T) bool) {
	for _, c := range slices.Backward(o.chunks) {
		for _, v := range slices.Backward(c) {
			if !take(v) {
				return
			}
		}
	}
}
