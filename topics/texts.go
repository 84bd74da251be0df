package topics

import "strings"

// texts makes the strings of a record. Short ones share blocks of memory, since a record has many of them: a text that
// is kept keeps its block, which is no more than some hundred bytes, and never the record.
type texts struct {
	block strings.Builder
	heads []string
}

const (
	longestShared = 64  // bytes of a text that shares a block
	blockSize     = 128 // bytes
	headsTogether = 6   // as many texts as most records have
)

// word copies b. Left is how much of the record is still to come, which bounds what its other texts can need.
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

// pointer is word with a place for it. A long text gets one of its own: what shares a place with it would keep it.
func (t *texts) pointer(b []byte, left int) *string {
	if len(b) > longestShared {
		long := string(b)
		return &long
	}
	if len(t.heads) == 0 {
		const shortest = len(`"a":"",`)
		t.heads = make([]string, min(1+left/shortest, headsTogether))
	}
	head := &t.heads[0]
	*head, t.heads = t.word(b, left), t.heads[1:]
	return head
}
