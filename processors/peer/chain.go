package peer

import (
	"cmp"
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/topics"
)

// Head is the end of an instance's hash chain: its last record. The head of a chain without records has only the InstanceID.
type Head struct {
	InstanceID string
	Seq        int64
	Hash       string
}

// HeadOf returns the head in the value of a record of the table of ChainGraph, whose keys are the instances.
func HeadOf(instanceID string, row []byte) (Head, error) {
	chain, err := peerrow.ChainTable.Unmarshal(row)
	if err != nil {
		return Head{}, err
	}
	return Head{InstanceID: instanceID, Seq: chain.GetSeq(), Hash: chain.GetHash()}, nil
}

// Append returns the next record of the chain, and the chain's new head. It sets the Version, InstanceID, Seq, PrevHash and
// Hash of r. The result depends on nothing else, so a record that is processed again after a crash from the same head is
// the same record. It panics if the head has no InstanceID.
func (h Head) Append(r topics.PeerAudit) (topics.PeerAudit, Head) {
	if h.InstanceID == "" {
		panic("peer: a chain without an instance ID")
	}
	r.Version, r.InstanceID, r.Seq, r.PrevHash = topics.PeerAuditVersion, h.InstanceID, h.Seq+1, h.Hash
	r.Hash = topics.PeerAuditHash(r)
	return r, headAt(r)
}

// headAt is the head of a chain that ends with r.
func headAt(r topics.PeerAudit) Head { return Head{InstanceID: r.InstanceID, Seq: r.Seq, Hash: r.Hash} }

// Chain is a part of the hash chain of one instance.
type Chain struct {
	// Since is the head before the first record. The zero value is the beginning of the chain.
	Since Head
	// Records are the records in the order of the chain. See Sorted.
	Records []topics.PeerAudit
	// Head is the head after the last record, from another source than the records. If it is the zero value, records that
	// were cut off at the end cannot be noticed.
	Head Head
}

// instance returns whose chain it is.
func (c Chain) instance() string {
	switch {
	case c.Head.InstanceID != "":
		return c.Head.InstanceID
	case c.Since.InstanceID != "":
		return c.Since.InstanceID
	case len(c.Records) > 0:
		return c.Records[0].InstanceID
	default:
		return ""
	}
}

// Sorted returns the records of an instance in the order of its chain, in a new slice. A topic has them by task, and after
// a crash of an at-least-once processor some of them twice: of records that are equal in all fields it returns one.
func Sorted(instanceID string, records []topics.PeerAudit) []topics.PeerAudit {
	var own []topics.PeerAudit
	for _, r := range records {
		if r.InstanceID == instanceID {
			own = append(own, r)
		}
	}
	// The hash orders different records with the same number, so that the order of the input does not matter.
	slices.SortStableFunc(own, func(a, b topics.PeerAudit) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Hash, b.Hash), cmp.Compare(content(a), content(b)))
	})
	return slices.CompactFunc(own, func(a, b topics.PeerAudit) bool { return a.Hash == b.Hash && content(a) == content(b) })
}

// content distinguishes records by all fields but the hash that they state.
func content(r topics.PeerAudit) string { return topics.PeerAuditHash(r) }
