package peer_test

import (
	"fmt"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	_ "github.com/turntable-streams/turntable/internal/testing/wirecheck" // validates what graphs write
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// chainFixture runs ChainGraph without a broker.
type chainFixture struct {
	*processortest.Driver
	topics  topics.Catalog
	events  *processortest.Input[topics.PeerAudit]
	audit   *processortest.Output[topics.PeerAudit]
	letters *processortest.Output[[]byte]
	table   *processortest.GroupTable[*peerrow.ChainRow]
}

func newChainFixture(t *testing.T) *chainFixture {
	t.Helper()
	c, err := topics.For("harbor", topics.WithPeers())
	require.NoError(t, err)
	graph, err := peer.ChainGraph("harbor")
	require.NoError(t, err)
	d := processortest.New(t, noon, graph)
	return &chainFixture{
		Driver: d, topics: c, events: processortest.In(d, c.PeerEvents), audit: processortest.Out(d, c.PeerAudit),
		letters: processortest.OutRaw(d, "harbor-peer-chain-dlq"),
		table:   processortest.Table(d, c.PeerChainGroup(), peerrow.ChainTable.Codec()),
	}
}

func (b *chainFixture) write(instance, id string, event topics.PeerAudit) {
	b.events.Pipe(instance, event, processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte(id)}))
}

func TestEventsOfAnInstanceBecomeOneChain(t *testing.T) {
	b := newChainFixture(t)
	for i := range 10 {
		b.write("hq-1", fmt.Sprint("e", i), topics.PeerAudit{Event: topics.PeerSent, TaskID: fmt.Sprint("t", i%3)})
		b.write("hq-1", fmt.Sprint("e", i/2), topics.PeerAudit{Event: topics.PeerSent, TaskID: "a repeat"})
		b.write("hq-2", fmt.Sprint("e", i), topics.PeerAudit{Event: topics.PeerSent, TaskID: "t"})
	}
	b.write("hq-1", "r", topics.PeerAudit{Event: topics.PeerRefused})
	var all []topics.PeerAudit
	for _, r := range b.audit.Drain() {
		require.Equal(t, fmt.Sprintf("%s/%d", r.Value.InstanceID, r.Value.Seq), r.ID())
		if r.Value.Event == topics.PeerRefused {
			require.Equal(t, "hq-1", r.Key, "a refusal without a task")
		} else {
			require.Equal(t, r.Value.TaskID, r.Key)
		}
		all = append(all, r.Value)
	}
	for instance, n := range map[string]int64{"hq-1": 11, "hq-2": 10} {
		row, ok := b.table.Get(instance)
		require.True(t, ok)
		require.Equal(t, n, row.Seq)
		records := peer.Sorted(instance, all)
		require.Len(t, records, int(n))
		require.Empty(t, peer.Verify(peer.Chain{
			Records: records, Head: peer.Head{InstanceID: instance, Seq: row.Seq, Hash: row.Hash},
		}))
	}
	require.NoError(t, b.Replay())
}

func TestEventsWithoutIDsAreToldApartByTheirRecords(t *testing.T) {
	b := newChainFixture(t)
	at := b.events.Pipe("hq-1", topics.PeerAudit{Event: topics.PeerSent, TaskID: "t"})
	b.events.Pipe("hq-1", topics.PeerAudit{Event: topics.PeerSent, TaskID: "t"})
	b.events.PipeAt(at)
	require.Len(t, b.audit.Drain(), 2)
}

func TestEventsThatHaveNoPlaceInAChainAreDeadLettered(t *testing.T) {
	b := newChainFixture(t)
	b.events.Pipe("", topics.PeerAudit{Event: topics.PeerSent, TaskID: "t"})
	b.events.Pipe("hq-1", topics.PeerAudit{Event: topics.PeerSent})
	b.events.Pipe("hq-1", topics.PeerAudit{TaskID: "t"})
	b.events.PipeRaw("hq-1", nil)
	b.events.PipeRaw("hq-1", []byte(`{`))
	require.Len(t, b.letters.Drain(), 5)
	require.Zero(t, b.audit.Len())
	require.Empty(t, b.table.Keys())
}

func TestDamagedChainIsKept(t *testing.T) {
	b := newChainFixture(t)
	raw := processortest.Table(b.Driver, b.topics.PeerChainGroup(), bytesCodec{})
	raw.Put("hq-1", []byte{0xff})
	b.write("hq-1", "e1", topics.PeerAudit{Event: topics.PeerSent, TaskID: "t"})
	require.Contains(t, string(b.letters.Next().Headers[topics.HeaderErrorReason]), "cannot be decoded")
	require.Equal(t, []byte{0xff}, raw.Raw("hq-1"))
	require.Zero(t, b.audit.Len())
}

// bytesCodec writes rows that no codec can decode.
type bytesCodec struct{}

func (bytesCodec) Marshal(raw []byte) ([]byte, error) { return raw, nil }

func (bytesCodec) Unmarshal(raw []byte) codec.Decoded[[]byte] {
	return codec.Decoded[[]byte]{Value: raw}
}

func TestChainGraphChecksItsArguments(t *testing.T) {
	_, err := peer.ChainGraph(" ")
	require.ErrorContains(t, err, "agent")
}
