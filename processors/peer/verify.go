package peer

import (
	"fmt"

	"github.com/turntable-streams/turntable/topics"
)

// Verify checks a chain and returns what is wrong with it, in the order of the records; nothing for an unchanged chain. It
// finds every record that was removed, altered, repeated, or moved. It cannot notice that an instance has rewritten its
// whole chain, or its end: compare the head with one that was kept elsewhere, and stitch the chain with those of its peers.
func Verify(c Chain) []Finding {
	v := verification{instance: c.instance(), last: c.Since, seen: map[int64]string{}}
	for _, r := range c.Records {
		v.check(r)
	}
	v.end(c.Head)
	return v.findings
}

// verification is how far a chain has been checked.
type verification struct {
	instance string
	last     Head             // of the record with the highest number so far
	seen     map[int64]string // the hashes of the records so far
	findings []Finding
}

func (v *verification) report(f Finding) { v.findings = append(v.findings, f) }

func (v *verification) check(r topics.PeerAudit) {
	switch {
	case r.InstanceID != v.instance:
		v.report(about(r, Foreign, fmt.Sprintf("the chain is that of instance %q", v.instance)))
		return
	case r.Version != topics.PeerAuditVersion:
		v.report(about(r, Unreadable, fmt.Sprintf("its version is %d; its hash was not checked", r.Version)))
	case topics.PeerAuditHash(r) != r.Hash:
		v.report(about(r, Altered, "its hash is not that of its content"))
	}
	before, repeated := v.seen[r.Seq]
	v.seen[r.Seq] = r.Hash
	switch {
	case repeated && before == r.Hash:
		v.report(about(r, Repeated, "a record with this hash is in the chain already"))
	case repeated:
		v.report(about(r, Forked, "another record has the same number"))
	case r.Seq <= v.last.Seq:
		v.report(about(r, Reordered, fmt.Sprintf("it is behind record %d", v.last.Seq)))
	default:
		v.advance(r)
	}
}

// advance checks that r follows the last record.
func (v *verification) advance(r topics.PeerAudit) {
	switch {
	case r.Seq > v.last.Seq+1:
		v.report(v.gap(v.last.Seq+1, r.Seq-1))
	case r.PrevHash != v.last.Hash:
		v.report(about(r, Unlinked, "it does not have the hash of the record before it"))
	}
	v.last = headAt(r)
}

func (v *verification) gap(from, to int64) Finding {
	text := fmt.Sprintf("record %d is not there", from)
	if to > from {
		text = fmt.Sprintf("records %d to %d are not there", from, to)
	}
	return Finding{Kind: Missing, InstanceID: v.instance, Seq: from, Text: text}
}

// end compares the last record with the head, if there is one.
func (v *verification) end(head Head) {
	switch {
	case head == Head{}:
	case v.last.Seq < head.Seq:
		v.report(v.gap(v.last.Seq+1, head.Seq))
	case v.last.Seq > head.Seq:
		v.report(Finding{
			Kind: Unlinked, InstanceID: v.instance, Seq: head.Seq + 1,
			Text: fmt.Sprintf("the head is at record %d, and the chain ends at record %d", head.Seq, v.last.Seq),
		})
	case v.last.Hash != head.Hash:
		v.report(Finding{
			Kind: Unlinked, InstanceID: v.instance, Seq: head.Seq, Text: "the head has another hash than the last record",
		})
	}
}
