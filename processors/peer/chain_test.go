package peer_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// chained makes records a chain.
func chained(instance string, records ...topics.PeerAudit) peer.Chain {
	head := peer.Head{InstanceID: instance}
	records = slices.Clone(records)
	for i, r := range records {
		records[i], head = head.Append(r)
	}
	return peer.Chain{Records: records, Head: head}
}

func kinds(findings []peer.Finding) (kinds []peer.Kind) {
	for _, f := range findings {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}

// anyRecord draws a record without a place in a chain.
func anyRecord(t *rapid.T) topics.PeerAudit {
	text := rapid.SampledFrom([]string{"", "a", "t-9", "é\x00\"", "\xff"})
	number := rapid.Int64Range(0, 3)
	return topics.PeerAudit{
		Event: rapid.SampledFrom([]topics.PeerEvent{
			topics.PeerSent, topics.PeerAcknowledged, topics.PeerSendFailed, topics.PeerReceived, topics.PeerCompleted,
			topics.PeerFailed, topics.PeerRefused, "peer.delegate.new",
		}).Draw(t, "event"),
		TaskID: "t" + text.Draw(t, "task"), AtMS: number.Draw(t, "at"), SessionID: text.Draw(t, "session"),
		RunID: text.Draw(t, "run"), PeerID: text.Draw(t, "peer"), ContentLength: number.Draw(t, "content"),
		ToolsUsed: rapid.SliceOfN(text, 0, 2).Draw(t, "tools"), PendingApproval: rapid.Bool().Draw(t, "pending"),
		Code: text.Draw(t, "code"),
	}
}

func anyChain(t *rapid.T, least int) peer.Chain {
	return chained("hq-1", rapid.SliceOfN(rapid.Custom(anyRecord), least, 8).Draw(t, "records")...)
}

func TestUnchangedChainHasNoFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t, 0)
		require.Empty(t, peer.Verify(c))
		require.Empty(t, peer.Verify(peer.Chain{Records: c.Records}), "without a head")

		// A part of it, from a head that was kept.
		at := rapid.IntRange(0, len(c.Records)).Draw(t, "at")
		_, kept := rebuilt(c.Records[:at])
		require.Empty(t, peer.Verify(peer.Chain{Since: kept, Records: c.Records[at:], Head: c.Head}))
	})
}

// rebuilt appends records again.
func rebuilt(records []topics.PeerAudit) (again []topics.PeerAudit, head peer.Head) {
	head = peer.Head{InstanceID: "hq-1"}
	for _, r := range records {
		r, head = head.Append(r)
		again = append(again, r)
	}
	return again, head
}

func TestAppendingAgainMakesTheSameRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t, 1)
		again, head := rebuilt(c.Records)
		require.Equal(t, c.Records, again)
		require.Equal(t, c.Head, head)
	})
}

func TestChainSurvivesItsTopic(t *testing.T) {
	catalog, err := topics.For("harbor", topics.WithPeers())
	require.NoError(t, err)
	codec := catalog.PeerAudit.Codec()
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t, 1)
		for i, r := range c.Records {
			raw, err := codec.Marshal(r)
			require.NoError(t, err)
			d := codec.Unmarshal(raw)
			require.NoError(t, d.Err)
			c.Records[i] = d.Value
		}
		require.Empty(t, peer.Verify(c), "also with texts that are not UTF-8")
	})
}

func TestEveryRemovedRecordIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t, 1)
		at := rapid.IntRange(0, len(c.Records)-1).Draw(t, "at")
		c.Records = slices.Delete(c.Records, at, at+1)
		found := peer.Verify(c)
		require.Equal(t, []peer.Kind{peer.Missing}, kinds(found))
		require.EqualValues(t, at+1, found[0].Seq)
	})
}

func TestEveryRepeatedRecordIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t, 1)
		r := rapid.SampledFrom(c.Records).Draw(t, "record")
		to := rapid.IntRange(int(r.Seq), len(c.Records)).Draw(t, "to")
		c.Records = slices.Insert(c.Records, to, r)
		found := peer.Verify(c)
		require.Equal(t, []peer.Kind{peer.Repeated}, kinds(found))
		require.Equal(t, r.Seq, found[0].Seq)
	})
}

func TestEveryOtherOrderIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t, 2)
		before := slices.Clone(c.Records)
		c.Records = rapid.Permutation(c.Records).Draw(t, "order")
		if slices.EqualFunc(before, c.Records, func(a, b topics.PeerAudit) bool { return a.Seq == b.Seq }) {
			require.Empty(t, peer.Verify(c))
			return
		}
		require.Contains(t, kinds(peer.Verify(c)), peer.Reordered)
		require.Equal(t, before, peer.Sorted("hq-1", c.Records))
	})
}

// alterations change one field each.
var alterations = map[string]func(*topics.PeerAudit){
	"event": func(r *topics.PeerAudit) { r.Event += "x" }, "task": func(r *topics.PeerAudit) { r.TaskID += "x" },
	"seq": func(r *topics.PeerAudit) { r.Seq++ }, "at": func(r *topics.PeerAudit) { r.AtMS++ },
	"instance": func(r *topics.PeerAudit) { r.InstanceID += "x" }, "version": func(r *topics.PeerAudit) { r.Version++ },
	"session": func(r *topics.PeerAudit) { r.SessionID += "x" }, "run": func(r *topics.PeerAudit) { r.RunID += "x" },
	"parent run":      func(r *topics.PeerAudit) { r.ParentRunID += "x" },
	"parent session":  func(r *topics.PeerAudit) { r.ParentSessionID += "x" },
	"parent instance": func(r *topics.PeerAudit) { r.ParentInstanceID += "x" },
	"peer":            func(r *topics.PeerAudit) { r.PeerID += "x" }, "inbound": func(r *topics.PeerAudit) { r.InboundID += "x" },
	"peer instance": func(r *topics.PeerAudit) { r.PeerInstanceID += "x" },
	"peer run":      func(r *topics.PeerAudit) { r.PeerRunID += "x" },
	"agent":         func(r *topics.PeerAudit) { r.AgentID += "x" }, "model": func(r *topics.PeerAudit) { r.Model += "x" },
	"content": func(r *topics.PeerAudit) { r.ContentLength++ }, "status": func(r *topics.PeerAudit) { r.Status += "x" },
	"result": func(r *topics.PeerAudit) { r.ResultLength++ },
	"tools": func(r *topics.PeerAudit) {
		r.ToolsUsed = append(slices.Clone(r.ToolsUsed), "x")
	},
	"pending": func(r *topics.PeerAudit) { r.PendingApproval = !r.PendingApproval },
	"code":    func(r *topics.PeerAudit) { r.Code += "x" }, "http": func(r *topics.PeerAudit) { r.HTTPStatus++ },
	"prev": func(r *topics.PeerAudit) { r.PrevHash += "x" }, "hash": func(r *topics.PeerAudit) { r.Hash += "x" },
}

func TestEveryAlteredFieldIsFound(t *testing.T) {
	names := make([]string, 0, len(alterations))
	for name := range alterations {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t, 1)
		at := rapid.IntRange(0, len(c.Records)-1).Draw(t, "at")
		name := rapid.SampledFrom(names).Draw(t, "field")
		alterations[name](&c.Records[at])
		require.NotEmpty(t, peer.Verify(c), "%s", name)

		// The forger also computes a new hash of the record: the next one, or the head, does not fit.
		c.Records[at].Hash = topics.PeerAuditHash(c.Records[at])
		if name != "hash" {
			require.NotEmpty(t, peer.Verify(c), "%s, with a new hash", name)
		}
	})
}

func TestEveryFieldIsAltered(t *testing.T) {
	require.Len(t, alterations, reflect.TypeFor[topics.PeerAudit]().NumField())
}

func TestFindingsOfAChain(t *testing.T) {
	record := topics.PeerAudit{Event: topics.PeerSent, TaskID: "t"}
	c := chained("hq-1", record, record, record, record)
	other := record
	other.AtMS = 1
	forged, _ := peer.Head{InstanceID: "hq-1", Seq: 1, Hash: c.Records[0].Hash}.Append(other)
	stranger := chained("hq-2", record).Records[0]
	newer := c.Records[1]
	newer.Version = 2
	all := c.Records
	for name, given := range map[string]struct {
		chain peer.Chain
		want  []string
	}{
		"nothing":    {peer.Chain{}, nil},
		"no records": {peer.Chain{Head: c.Head}, []string{`missing: instance "hq-1", record 1: records 1 to 4 are not there`}},
		"cut off": {
			peer.Chain{Records: all[:2], Head: c.Head},
			[]string{`missing: instance "hq-1", record 3: records 3 to 4 are not there`},
		},
		"cut off, without a head": {peer.Chain{Records: all[:2]}, nil},
		"begins late": {
			peer.Chain{Records: all[2:], Head: c.Head},
			[]string{`missing: instance "hq-1", record 1: records 1 to 2 are not there`},
		},
		"stale head": {
			peer.Chain{Records: all, Head: peer.Head{InstanceID: "hq-1", Seq: 3, Hash: all[2].Hash}},
			[]string{`unlinked: instance "hq-1", record 4: the head is at record 3, and the chain ends at record 4`},
		},
		"another head": {
			peer.Chain{Records: all, Head: peer.Head{InstanceID: "hq-1", Seq: 4, Hash: "x"}},
			[]string{`unlinked: instance "hq-1", record 4: the head has another hash than the last record`},
		},
		"fork": {
			peer.Chain{Records: slices.Insert(slices.Clone(all), 2, forged), Head: c.Head},
			[]string{`forked: instance "hq-1", record 2, task "t", peer.delegate.sent: another record has the same number`},
		},
		"replaced": {
			peer.Chain{Records: []topics.PeerAudit{all[0], forged, all[2], all[3]}, Head: c.Head},
			[]string{`unlinked: instance "hq-1", record 3, task "t", peer.delegate.sent: it does not have the hash of the record before it`},
		},
		"foreign": {
			peer.Chain{Records: slices.Insert(slices.Clone(all), 1, stranger), Head: c.Head},
			[]string{`foreign: instance "hq-2", record 1, task "t", peer.delegate.sent: the chain is that of instance "hq-1"`},
		},
		"newer version": {
			peer.Chain{Records: []topics.PeerAudit{all[0], newer, all[2], all[3]}, Head: c.Head},
			[]string{`unreadable: instance "hq-1", record 2, task "t", peer.delegate.sent: its version is 2; its hash was not checked`},
		},
		"before the start": {
			peer.Chain{Since: peer.Head{InstanceID: "hq-1", Seq: 2, Hash: all[1].Hash}, Records: all[1:], Head: c.Head},
			[]string{`reordered: instance "hq-1", record 2, task "t", peer.delegate.sent: it is behind record 2`},
		},
	} {
		var got []string
		for _, f := range peer.Verify(given.chain) {
			got = append(got, f.String())
		}
		require.Equal(t, given.want, got, name)
	}
}

func TestSortedKeepsRecordsThatDiffer(t *testing.T) {
	record := topics.PeerAudit{Event: topics.PeerSent, TaskID: "t"}
	c := chained("hq-1", record, record)
	altered := c.Records[0]
	altered.AtMS++ // it states the same hash
	given := []topics.PeerAudit{c.Records[1], altered, c.Records[0], c.Records[0]}
	sorted := peer.Sorted("hq-1", given)
	require.Len(t, sorted, 3)
	require.Contains(t, kinds(peer.Verify(peer.Chain{Records: sorted, Head: c.Head})), peer.Altered)
	slices.Reverse(given)
	require.Equal(t, sorted, peer.Sorted("hq-1", given), "whatever the order of the topic")
	require.Empty(t, peer.Sorted("hq-2", given))
}

func TestChainNeedsAnInstance(t *testing.T) {
	require.Panics(t, func() { peer.Head{}.Append(topics.PeerAudit{}) })
	require.NotPanics(t, func() { _ = fmt.Sprint(peer.Verify(peer.Chain{})) })
}
