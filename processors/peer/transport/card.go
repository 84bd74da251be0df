package transport

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer"
)

const (
	// cardTime is for how long a card is used, and maxCards how many are kept.
	cardTime = time.Minute
	maxCards = 2 * peer.MaxEntries
	// cardTimeout bounds how long a card is waited for.
	cardTimeout = 10 * time.Second
)

// cards keeps the cards of peers by their base URLs. It is safe for concurrent use.
type cards struct {
	mu   sync.Mutex
	kept map[string]keptCard
}

type keptCard struct {
	card  peerwire.Card // without the agents
	until time.Time
}

func (c *cards) get(base string, now time.Time) (peerwire.Card, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kept[base]
	return k.card, ok && now.Before(k.until)
}

func (c *cards) put(base string, card peerwire.Card, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= maxCards {
		c.kept = map[string]keptCard{} // the configuration has changed often
	}
	card.Agents = nil
	c.kept[base] = keptCard{card, now.Add(cardTime)}
}

// card returns the card of a peer, read within the last minute. A peer that answers without a card has the zero card, without
// capabilities. broken is the outcome of an attempt that needs the card if the peer does not answer, or is busy.
func (t *Transport) card(ctx context.Context, peer peer.Outbound, most time.Duration) (card peerwire.Card, broken *outcome) {
	now := t.clock.Now()
	if card, ok := t.cards.get(peer.BaseURL, now); ok {
		return card, nil
	}
	inner, cancel := context.WithTimeout(ctx, min(most, cardTimeout))
	defer cancel()
	r, err := http.NewRequestWithContext(inner, http.MethodGet, peer.BaseURL+cardPath, nil)
	if err != nil {
		o := failed(peerwire.CodeUnreachable, "request cannot be made", final)
		return card, &o
	}
	r.Header.Set("Accept", "application/json") // the card is public: no token
	response, body, lost := t.do(inner, r, peerwire.MaxCard)
	if lost != nil {
		if ctx.Err() != nil {
			*lost = interruption(ctx, network{})
		}
		return card, lost
	}
	if response.StatusCode < 300 {
		card, _ = peerwire.ReadCard(body) // the zero card is that of a peer without capabilities
	} else if o := refused(response, body, now); !o.failure.Final {
		return card, &o
	}
	t.cards.put(peer.BaseURL, card, now)
	return card, nil
}
