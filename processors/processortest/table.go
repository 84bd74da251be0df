package processortest

import (
	"fmt"
	"sync"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// RowCodec encodes the rows of a table. A codec.Codec, or a type that embeds one, implements it.
type RowCodec[T any] interface {
	Marshal(T) ([]byte, error)
	Unmarshal([]byte) codec.Decoded[T]
}

// GroupTable reads and seeds the table of a group.
type GroupTable[T any] struct {
	driver *Driver
	group  goka.Group
	rows   *rows
	codec  RowCodec[T]
}

// Table returns the table of a group. It fails the test if the driver does not run the group or the group has no table.
func Table[T any](d *Driver, group goka.Group, c RowCodec[T]) *GroupTable[T] {
	d.tb.Helper()
	t := &GroupTable[T]{driver: d, group: group, codec: c}
	if r := d.runner(group); r != nil && r.rows != nil {
		t.rows = r.rows
		return t
	}
	d.fail(fmt.Errorf("processortest: group %s has no table here", group))
	return t
}

// Get returns the row of a key and whether it exists. It fails the test if the codec cannot decode the row.
func (t *GroupTable[T]) Get(key string) (value T, ok bool) {
	t.driver.tb.Helper()
	raw := t.Raw(key)
	if raw == nil {
		return value, false
	}
	decoded := t.codec.Unmarshal(raw)
	if decoded.Err != nil {
		t.driver.fail(fmt.Errorf("processortest: row of group %s: %w", t.group, decoded.Err))
	}
	return decoded.Value, true
}

// Raw returns the bytes of the row of a key, nil if there is none. Do not modify them.
func (t *GroupTable[T]) Raw(key string) []byte {
	t.driver.tb.Helper()
	raw, err := t.rows.Get(key)
	t.check(err)
	return raw
}

// Part returns part n of the row of a key, nil if there is none. Do not modify it.
func (t *GroupTable[T]) Part(key string, n uint32) []byte {
	t.driver.tb.Helper()
	return t.Raw(runtimeapi.PartKey(key, n))
}

// Put writes a row directly to the table; no callback runs. A deadline in the row fires at the next Advance that reaches it.
func (t *GroupTable[T]) Put(key string, value T) {
	t.driver.tb.Helper()
	raw, err := t.codec.Marshal(value)
	if err == nil {
		delete(t.driver.runner(t.group).fired, key)
		err = t.rows.Set(key, raw)
	}
	t.check(err)
}

// Delete deletes a row directly from the table; no callback runs.
func (t *GroupTable[T]) Delete(key string) {
	t.driver.tb.Helper()
	t.check(t.rows.Delete(key))
}

// Keys returns the keys of all rows, sorted, without the keys of parts.
func (t *GroupTable[T]) Keys() []string {
	t.driver.tb.Helper()
	var keys []string
	t.check(t.rows.each(func(key string, _ []byte) {
		if !runtimeapi.IsPart(key) {
			keys = append(keys, key)
		}
	}))
	return keys
}

func (t *GroupTable[T]) check(err error) {
	t.driver.tb.Helper()
	if err != nil {
		t.driver.fail(fmt.Errorf("processortest: table of group %s: %w", t.group, err))
	}
}

// rows is the storage of a group table. It counts the writes of each key, because a deadline that has fired fires again
// only after its row was written.
type rows struct {
	storage.Storage
	mu     sync.Mutex
	writes map[string]int
}

func (s *rows) Set(key string, value []byte) error {
	s.wrote(key)
	return s.Storage.Set(key, value)
}

func (s *rows) Delete(key string) error {
	s.wrote(key)
	return s.Storage.Delete(key)
}

func (s *rows) wrote(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes[key]++
}

func (s *rows) version(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes[key]
}

// parts returns the numbers of the parts of a row.
func (s *rows) parts(key string) (numbers []uint32, err error) {
	it, err := s.Storage.Iterator()
	if err != nil {
		return nil, err
	}
	defer it.Release()
	for it.Next() {
		if n, ok := runtimeapi.PartNumber(key, string(it.Key())); ok {
			numbers = append(numbers, n)
		}
	}
	return numbers, it.Err()
}

// each calls visit for each row of a snapshot and for each part of one, in key order.
func (s *rows) each(visit func(key string, row []byte)) error {
	it, err := s.Iterator()
	if err != nil {
		return err
	}
	defer it.Release()
	for it.Next() {
		row, err := it.Value()
		if err != nil {
			return err
		}
		visit(string(it.Key()), row)
	}
	return it.Err()
}
