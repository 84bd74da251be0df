package delegation

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/internal/truncate"
)

// rowReserve is the part of the row that is kept free for the callback message in flight and for outputs that are read early.
const rowReserve = 8 << 10

// reserve returns what the end of a delegation may add to the row: the shortest text that announces it, beside fields that the
// delegation has already. Its origin moves from one to the other.
func reserve(x *delegationrow.Task) int {
	if !isOpen(x) {
		return 0
	}
	return minAnnounced + 512 + len(x.CallbackId) + len(x.CallKey) + len(x.Target)
}

// size returns the size of the row with all that open delegations may add to it.
func (t *transition) size() int {
	n := proto.Size(t.row) + rowReserve
	for _, x := range t.row.Tasks {
		n += reserve(x)
	}
	return n
}

// room reports whether so many bytes fit into the row. For them it forgets delegations that have ended, oldest first, and then
// shortens results that wait to be announced.
func (t *transition) room(bytes int) bool {
	for t.size()+bytes > t.config.RowLimit {
		if !t.forgetEnded() && !t.shorten() {
			return false
		}
	}
	return true
}

// free returns how many bytes of up to most fit into the row, without shortening what it holds.
func (t *transition) free(most int) int {
	for {
		if n := t.config.RowLimit - t.size(); n >= most {
			return most
		} else if !t.forgetEnded() {
			return n
		}
	}
}

// forgetEnded forgets the oldest delegation that has ended. It returns false if there is none.
func (t *transition) forgetEnded() bool {
	i := slices.IndexFunc(t.row.Tasks, func(x *delegationrow.Task) bool { return !isOpen(x) })
	if i < 0 {
		return false
	}
	t.row.Tasks, t.changed = slices.Delete(t.row.Tasks, i, i+1), true
	return true
}

// forgetOldest forgets delegations that have ended while there are too many, oldest first.
func (t *transition) forgetOldest() {
	for len(t.row.Tasks)-t.openTasks() > maxEnded {
		t.forgetEnded()
	}
}

// shorten halves the longest text that waits to be announced, or for its call. It returns false if all are as short as they may be.
func (t *transition) shorten() bool {
	var longest *string
	add := func(text *string) {
		if longest == nil || len(*text) > len(*longest) {
			longest = text
		}
	}
	for _, c := range t.row.Pending {
		add(&c.Text)
	}
	for _, x := range t.row.Early {
		add(&x.Content)
	}
	if longest == nil || len(*longest) <= minAnnounced {
		return false
	}
	*longest = truncate.Text(*longest, max(len(*longest)/2, minAnnounced))
	t.changed = true
	return true
}
