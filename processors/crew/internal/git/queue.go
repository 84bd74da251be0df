package git

import (
	"context"
	"sync"
)

// queues let the commits of this process into a repository one after the other. Without them they would conflict, and each
// would be made several times. Other processes are not affected. There is one queue for each repository that was ever used.
var queues = struct {
	sync.Mutex
	of map[string]chan struct{}
}{of: map[string]chan struct{}{}}

// enter waits for a repository. leave lets the next one in.
func enter(ctx context.Context, repository string) (leave func(), err error) {
	queues.Lock()
	q := queues.of[repository]
	if q == nil {
		q = make(chan struct{}, 1)
		queues.of[repository] = q
	}
	queues.Unlock()
	select {
	case q <- struct{}{}:
		return func() { <-q }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
