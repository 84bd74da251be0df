package whole

import (
	"context"
	"strconv"
	"sync"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

// wall keeps what was posted on all channels.
type wall struct {
	mu     sync.Mutex
	chunks []adapter.Chunk
	fail   func(adapter.Chunk) error
}

func newWall() *wall { return &wall{} }

func (w *wall) all() []adapter.Chunk {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]adapter.Chunk(nil), w.chunks...)
}

// at returns the texts at the place of an origin, in their order.
func (w *wall) at(o topics.Origin) (texts []string) {
	for _, c := range w.all() {
		if c.To.SamePlace(o) {
			texts = append(texts, c.Text)
		}
	}
	return texts
}

// painter is an adapter that posts to a wall.
type painter struct {
	channel string
	wall    *wall
}

func (p painter) Channel() string { return p.channel }

func (p painter) Traits() adapter.Traits {
	return adapter.Traits{
		Format: text.Plain, Limit: text.Limit{Max: 200, Unit: text.Runes}, Threads: true, Buttons: p.channel == "slack",
	}
}

func (p painter) Send(_ context.Context, c adapter.Chunk) (adapter.Sent, error) {
	p.wall.mu.Lock()
	defer p.wall.mu.Unlock()
	if p.wall.fail != nil {
		if err := p.wall.fail(c); err != nil {
			return adapter.Sent{}, err
		}
	}
	p.wall.chunks = append(p.wall.chunks, c)
	return adapter.Sent{ID: "p" + strconv.Itoa(len(p.wall.chunks))}, nil
}
