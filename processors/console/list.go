package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	// pageSize is how many entries a list shows at a time, and scanLimit at how many a request looks at most.
	pageSize  = 100
	scanLimit = 20_000
	// scanStep is at how many entries a request looks under the lock of the index at a time.
	scanStep = 1000
)

// listing is a part of a list. Total is -1 if it is not known.
type listing[T any] struct {
	Items       []T
	First       int
	Total       int
	Next        string // where the next part begins; empty for the last one
	Page        string
	Parameters  []any
	Noun, Empty string // Noun is that of one item
}

// Range says which part of the list is shown.
func (l listing[T]) Range() string {
	last := l.First + len(l.Items) - 1
	switch {
	case len(l.Items) == 0 && l.Next == "":
		return l.Empty
	case len(l.Items) == 0:
		return "none among those that were looked at, and there are more"
	case l.Total >= 0 && l.First == 1 && last == l.Total:
		return several(l.Total, l.Noun)
	case l.Total >= 0 && l.First == 1:
		return fmt.Sprintf("first %s of %s", count(last), several(l.Total, l.Noun))
	case l.Total >= 0:
		return fmt.Sprintf("%s to %s of %s", count(l.First), count(last), several(l.Total, l.Noun))
	case l.Next != "":
		return fmt.Sprintf("%s to %s, and there are more", count(l.First), count(last))
	}
	return fmt.Sprintf("%s to %s, the last of them", count(l.First), count(last))
}

// several writes a number of things. noun is that of one.
func several(n int, noun string) string {
	stem, isY := strings.CutSuffix(noun, "y")
	switch {
	case n == 1:
		return "1 " + noun
	case isY:
		return count(n) + " " + stem + "ies"
	}
	return count(n) + " " + noun + "s"
}

// More are the parameters of the next part.
func (l listing[T]) More() []any {
	return append(slices.Clone(l.Parameters), "after", l.Next, "from", l.First+len(l.Items))
}

// entries are what a listing is taken from: an ordered list of the index. Its functions are called under the lock of the index.
type entries[I, T any] struct {
	of *ordered[I]
	// place makes the place of a cursor, and cursor is that of an entry.
	place  func(ms int64, id string) I
	cursor func(I) (ms int64, id string)
	// see returns what is shown of an entry, and the session of which the caller must be allowed to see it; ok is false for an entry
	// that is left out.
	see func(I) (t T, session string, ok bool)
	// in reports whether an entry is still in the list (default: all are).
	in func(I) bool
	// some says that see leaves entries out, so that it is not known how many there are.
	some bool
}

// entry is what was seen of an entry.
type entry[T any] struct {
	item    T
	session string
	ms      int64
	id      string
	shown   bool
}

// cursorText is the cursor of an entry as a parameter.
func (e entry[T]) cursorText() string { return strconv.FormatInt(e.ms, 36) + "." + e.id }

// step returns the next entries of a list after one, or from a place on, and whether there are more.
func (e entries[I, T]) step(x *index, after *entry[T], begin *I, n int) (list []entry[T], more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if after != nil {
		p := e.place(after.ms, after.id)
		begin = &p
	}
	e.of.from(begin, func(v I) bool {
		ms, id := e.cursor(v)
		switch {
		case e.in != nil && !e.in(v):
			return false
		case after != nil && after.ms == ms && after.id == id:
			return true
		case len(list) == n:
			more = true
			return false
		}
		t, session, ok := e.see(v)
		list = append(list, entry[T]{t, session, ms, id, ok})
		return true
	})
	return list, more
}

// listed fills a listing with the entries that the caller may see, from the cursor of the request on, or from a place. It asks
// the host who may use a session, which can be slow, without the lock of the index.
func listed[I, T any](r *request, l listing[T], size int, begin *I, e entries[I, T]) listing[T] {
	var after *entry[T]
	l.First = 1
	if ms, id, ok := cursorOf(r.first("after")); ok && size == pageSize {
		after = &entry[T]{ms: ms, id: id}
		if from, err := strconv.Atoi(r.first("from")); err == nil && from > 1 {
			l.First = from
		}
	}
	x := r.console.follower.index
	l.Total = -1
	if r.Caller.MayUse == nil && !e.some {
		x.mu.Lock()
		l.Total = e.of.n
		x.mu.Unlock()
	}
	for looked, n := 0, size+1; ; n = scanStep {
		part, more := e.step(x, after, begin, n)
		for i := range part {
			if len(l.Items) == size || looked == scanLimit || looked > 0 && r.Context().Err() != nil {
				l.Next = after.cursorText()
				return l
			}
			looked++
			after = &part[i]
			if after.shown && r.Caller.Allowed(after.session) {
				l.Items = append(l.Items, after.item)
			}
		}
		if !more {
			return l
		}
	}
}

func cursorOf(text string) (ms int64, id string, ok bool) {
	number, id, ok := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(number, 36, 64)
	return ms, id, ok && err == nil
}
