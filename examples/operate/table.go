package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
)

// rows are what a command keeps of the rows of a table, by key. view makes it of a row, which is nil if there is none.
type rows[T any] struct {
	codec goka.Codec
	view  func(key string, row any) (T, error)
	byKey map[string]T
	// unreadable are the rows that this build cannot read.
	unreadable map[string]error
}

func newRows[T any](codec goka.Codec, view func(string, any) (T, error)) *rows[T] {
	return &rows[T]{codec: codec, view: view, byKey: map[string]T{}, unreadable: map[string]error{}}
}

// take applies a record of the table's topic.
func (r *rows[T]) take(in processors.Inbound) {
	key, _, isPart := processors.TableKey(string(in.Key))
	if isPart {
		return
	}
	delete(r.byKey, key)
	delete(r.unreadable, key)
	if in.Value == nil {
		return
	}
	row, err := r.codec.Decode(in.Value)
	if err == nil {
		var v T
		if v, err = r.view(key, row); err == nil {
			r.byKey[key] = v
			return
		}
	}
	r.unreadable[key] = err
}

// only is take for the records of one key.
func (r *rows[T]) only(key string) func(processors.Inbound) {
	return func(in processors.Inbound) {
		if string(in.Key) == key {
			r.take(in)
		}
	}
}

// readAll reads a whole table.
func readAll[T any](ctx context.Context, o *operator, table string, r *rows[T]) error {
	reads, err := o.reader(ctx, table)
	if err != nil {
		return err
	}
	defer reads.close()
	return reads.all(ctx, r.take)
}

// warn says which rows are left out.
func (r *rows[T]) warn(o *operator, table string) {
	keys := make([]string, 0, len(r.unreadable))
	for key := range r.unreadable {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		o.waiting("%s: the row of %s cannot be read and is left out: %v", table, key, oneLine(r.unreadable[key]))
	}
}

// tableOf is the topic of a group's table.
func tableOf(group goka.Group) string { return string(goka.GroupTable(group)) }

// one returns the view of a key, and whether it has a row.
func (r *rows[T]) one(key string) (v T, ok bool, err error) {
	if err := r.unreadable[key]; err != nil {
		return v, false, fmt.Errorf("the row of %s cannot be read: %w; a newer build may have written it: use its turntable command", key, err)
	}
	v, ok = r.byKey[key]
	return v, ok, nil
}
