package sink_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_120)

// paper is a publisher that records receipts.
type paper struct {
	mu       sync.Mutex
	receipts []topics.Receipt
	err      error // returned by the next Publish
}

func (p *paper) Publish(_ context.Context, records ...processors.Outbound) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.err; err != nil {
		p.err = nil
		return err
	}
	c, _ := topics.For("pilot")
	for _, r := range records {
		d := c.DeliveryReceipts.Codec().Unmarshal(r.Value)
		if d.Err != nil {
			return d.Err
		}
		p.receipts = append(p.receipts, d.Value)
	}
	return nil
}

func (p *paper) all() []topics.Receipt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]topics.Receipt(nil), p.receipts...)
}

// attempt returns a delivery to a service that is due at noon.
func attempt(service string, change ...func(*topics.Delivery)) topics.Delivery {
	token := "t0ken"
	d := topics.Delivery{
		DeliveryID: "d-1", SessionID: "s", TurnID: "t", Route: topics.Destination{Kind: topics.KindHTTP, Service: service},
		Token: &token, Body: topics.Raw(`{"session_id":"s","content":"Berth N4 is \"free\"."}`), Attempt: 1,
		CreatedMS: noon.UnixMilli(), ExpiresMS: noon.Add(time.Hour).UnixMilli(),
		LeaseUntilMS: noon.Add(time.Minute).UnixMilli(),
	}
	for _, f := range change {
		f(&d)
	}
	return d
}

func inbound(t testing.TB, d topics.Delivery) processors.Inbound {
	t.Helper()
	c, err := topics.For("pilot")
	require.NoError(t, err)
	value, err := c.Deliveries.Codec().Marshal(d)
	require.NoError(t, err)
	return processors.Inbound{Topic: c.Deliveries.Name(), Key: []byte(d.SessionID), Value: value}
}
