package instance

import (
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// committedFor is how long the group's committed offsets are shared between claims.
const committedFor = time.Second

// committed shares one request for the group's committed offsets between the claims of a generation, which begin
// together. One request each would delay some claims behind others: a session's records on one topic would be processed
// long before those on another.
type committed struct {
	mu   sync.Mutex
	read time.Time
	resp *sarama.OffsetFetchResponse
}

// get returns the committed offsets, at most committedFor old, or the present ones if fresh.
func (c *committed) get(client sarama.Client, group string, fresh bool) (*sarama.OffsetFetchResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resp != nil && !fresh && time.Since(c.read) < committedFor {
		return c.resp, nil
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	resp, err := offsetsOf(admin, group)
	if err != nil {
		return nil, err
	}
	if resp.Err != sarama.ErrNoError {
		return nil, resp.Err
	}
	c.read, c.resp = began, resp
	return resp, nil
}
