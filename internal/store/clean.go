package store

import "github.com/hashicorp/golang-lru/v2/simplelru"

// clean keeps what the base has for the keys that were asked for or written last: a session's next event comes soon, and
// LevelDB takes longer to find its row than the event takes to be applied. It is guarded by the store's mutex.
type clean struct {
	rows *simplelru.LRU[string, []byte]
	size int
	// writes counts the layers that reached the base. What was read before one of them may be old after it.
	writes int64
}

const (
	// cleanBytes bounds the rows of a partition that are kept; a larger one than cleanRow is not worth its place.
	cleanBytes = 1 << 20
	cleanRow   = 16 << 10
	// cleanEntry is what a row costs beside its bytes.
	cleanEntry = 200
)

func newClean() *clean {
	c := &clean{}
	c.rows, _ = simplelru.NewLRU(cleanBytes/cleanEntry, func(key string, value []byte) { // its only error is a size of 0
		c.size -= cleanSize(key, value)
	})
	return c
}

func cleanSize(key string, value []byte) int { return len(key) + len(value) + cleanEntry }

func (c *clean) get(key string) ([]byte, bool) { return c.rows.Get(key) }

// read keeps a row that was read from the base when it had so many writes.
func (c *clean) read(key string, value []byte, writes int64) {
	if writes == c.writes {
		c.put(key, value)
	}
}

// written takes over what a layer has brought to the base.
func (c *clean) written(l *layer) {
	c.writes++
	for key, r := range l.rows {
		c.put(key, r.value)
	}
}

func (c *clean) put(key string, value []byte) {
	c.rows.Remove(key)
	if value == nil || len(value) > cleanRow {
		return
	}
	c.rows.Add(key, value)
	for c.size += cleanSize(key, value); c.size > cleanBytes; {
		c.rows.RemoveOldest()
	}
}
