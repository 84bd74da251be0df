package topics

import "strings"

// texts allocates the strings of one record. A record has many short strings, so they share blocks of memory. A string that
// is kept keeps its block of 128 bytes in memory, not the record.
type texts struct {
	block strings.Builder
	// pointees are the strings that pointer returns pointers to. They are allocated in groups.
	pointees []string
}

const (
	longestShared = 64  // bytes of a string that shares a block
	blockSize     = 128 // bytes
	pointeeGroup  = 6   // strings; most records have no more
)

// word copies b to a string. left is the number of unread bytes of the record, which limits the size of a new block.
func (t *texts) word(b []byte, left int) string {
	if len(b) > longestShared {
		return string(b)
	}
	if t.block.Cap()-t.block.Len() < len(b) {
		t.block = strings.Builder{}
		t.block.Grow(min(len(b)+left, blockSize))
	}
	start := t.block.Len()
	t.block.Write(b)
	return t.block.String()[start:]
}

// pointer returns a pointer to a copy of b. A long string is not put in a group: a pointer to another string of the group
// would keep it in memory.
func (t *texts) pointer(b []byte, left int) *string {
	if len(b) > longestShared {
		long := string(b)
		return &long
	}
	if len(t.pointees) == 0 {
		const shortestMember = len(`"a":"",`)
		t.pointees = make([]string, min(1+left/shortestMember, pointeeGroup))
	}
	p := &t.pointees[0]
	*p, t.pointees = t.word(b, left), t.pointees[1:]
	return p
}
