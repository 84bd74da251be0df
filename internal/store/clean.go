package store

import "github.com/hashicorp/golang-lru/v2/simplelru"

// clean caches the base's values of the keys that were read or written most recently: a session's next event follows soon,
// and LevelDB takes longer to find its row than the event takes to be applied. It is guarded by the store's mutex.
type clean struct {
	rows *simplelru.LRU[string, []byte]
	size int
	// writes counts the layers that were written to the base. A value that was read before one of them may be stale after it.
	writes int64
}

const (
	// cleanBytes bounds the size of the cache of a partition. Rows larger than cleanRow are not cached.
	cleanBytes = 1 << 20
	cleanRow   = 16 << 10
	// cleanEntry is the overhead of a row beside its bytes.
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

// read caches a row that was read from the base when writes had the given value; it drops the row if writes has changed.
func (c *clean) read(key string, value []byte, writes int64) {
	if writes == c.writes {
		c.put(key, value)
	}
}

// written caches the rows of a layer that was written to the base.
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
