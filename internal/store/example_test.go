package store_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/internal/store"
)

func Example() {
	s := store.InMemory()
	defer s.Close()
	_ = s.MarkRecovered()

	_ = s.Set("session", []byte("turn 1"))
	_ = s.SetOffset(41)
	if s.Seal() { // nothing is in flight: a cut
		_ = s.Flush()
	}
	_ = s.Set("session", []byte("turn 2")) // belongs to the next cut
	value, _ := s.Get("session")
	offset, _ := s.GetOffset(-1)
	fmt.Printf("%s, offset %d\n", value, offset)
	// Output: turn 2, offset 41
}

func ExampleWithDeadline() {
	s := store.InMemory(store.WithDeadline(deadline))
	defer s.Close()
	_ = s.Set("session", []byte("@1500"))
	fmt.Println(s.Due().PopDue(1499, 10), s.Due().PopDue(1500, 10))
	// Output: [] [{session 1500}]
}

func ExampleStore_IteratorWithRange() {
	s := store.InMemory()
	defer s.Close()
	for _, k := range []string{"a", "b", "c"} {
		_ = s.Set(k, []byte(k))
	}
	it, _ := s.IteratorWithRange([]byte("b"), nil)
	defer it.Release()
	for it.Next() {
		fmt.Printf("%s ", it.Key())
	}
	// Output: b c
}
