package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// auditOf is the audit of one instance as its broker has it: the records, and the head of their chain from the table of
// peer.ChainGraph. It is safe for concurrent use.
type auditOf struct {
	member  *member
	catalog topics.Catalog
	changed chan<- struct{} // capacity 1

	mu      sync.Mutex
	records []topics.PeerAudit
	head    peer.Head
}

// read reads the audit of an instance, and what is added to it until ctx ends.
func read(ctx context.Context, m *member, c *child, wait *sync.WaitGroup, changed chan<- struct{}) (*auditOf, error) {
	all, err := catalog()
	if err != nil {
		return nil, err
	}
	a := &auditOf{member: m, catalog: all, changed: changed}
	heads := string(goka.GroupTable(all.PeerChainGroup()))
	follower, err := processors.NewTableFollower(c.brokers, []string{all.PeerAudit.Name(), heads}, a.add)
	if err != nil {
		return nil, err
	}
	return a, begin(ctx, follower, wait)
}

func (a *auditOf) add(r processors.Inbound) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Topic == a.catalog.PeerAudit.Name() {
		if record := valueOf(a.catalog.PeerAudit, r); record != nil {
			a.records = append(a.records, *record)
		}
	} else if string(r.Key) == a.member.id {
		if head, err := peer.HeadOf(a.member.id, r.Value); err == nil {
			a.head = head
		}
	}
	select {
	case a.changed <- struct{}{}:
	default: // the reader looks at all audits anyway
	}
}

// chain returns the chain of the instance.
func (a *auditOf) chain() peer.Chain {
	a.mu.Lock()
	defer a.mu.Unlock()
	return peer.Chain{Records: peer.Sorted(a.member.id, a.records), Head: a.head}
}

// The delegations of the play: how many HQ sent to each client, and how many acme sent to HQ.
const (
	toAcme   = 4
	toGlobex = 1
	toHQ     = 1
)

// audit verifies the chains and stitches HQ's with those of its clients. The last records of the last task may still be on
// their way, so it reads on until nothing is missing.
func (p *play) audit(ctx context.Context) error {
	p.screen.title("The audits, stitched")
	changed := make(chan struct{}, 1)
	audits := map[*member]*auditOf{}
	for _, m := range []*member{p.hq, p.acme, p.globex} {
		var err error
		if audits[m], err = read(ctx, m, p.running[m], &p.followers, changed); err != nil {
			return err
		}
	}
	for {
		chains := map[*member]peer.Chain{}
		for m, a := range audits {
			chains[m] = a.chain()
		}
		findings := p.findings(chains)
		if sent(chains[p.hq], p.acme.id) == toAcme && sent(chains[p.hq], p.globex.id) == toGlobex &&
			sent(chains[p.acme], p.hq.id) == toHQ && len(findings) == 0 {
			p.report(chains)
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%w: the audit has gaps: %v", errUnexpected, findings), context.Cause(ctx))
		}
	}
}

// sent counts the tasks that a peer was sent.
func sent(c peer.Chain, peerID string) (n int) {
	for _, r := range c.Records {
		if r.Event == topics.PeerSent && r.PeerID == peerID {
			n++
		}
	}
	return n
}

// findings is all that is wrong with the chains.
func (p *play) findings(chains map[*member]peer.Chain) (all []peer.Finding) {
	for _, m := range []*member{p.hq, p.acme, p.globex} {
		all = append(all, peer.Verify(chains[m])...)
	}
	for _, m := range []*member{p.acme, p.globex} {
		all = append(all, peer.Stitch(half(p.hq, m, chains), half(m, p.hq, chains))...)
	}
	return all
}

// half is the audit of an instance about another one. The labels are the IDs in this example.
func half(of, other *member, chains map[*member]peer.Chain) peer.Half {
	return peer.Half{Chain: chains[of], PeerID: other.id, InboundID: other.id}
}

// report prints the chains and, of each task, what both sides have recorded.
func (p *play) report(chains map[*member]peer.Chain) {
	members := []*member{p.hq, p.acme, p.globex}
	for _, m := range members {
		c := chains[m]
		p.screen.line(m.id, "%d records, each with the hash of the one before it; the last is %.12s", len(c.Records), c.Head.Hash)
	}
	for _, from := range members {
		for _, r := range chains[from].Records {
			if r.Event != topics.PeerSent {
				continue
			}
			for _, to := range members {
				if to.id == r.PeerID {
					p.screen.line("pair", "%.12s  %s: %s  <->  %s: %s", r.TaskID,
						from.id, events(chains[from], r.TaskID), to.id, events(chains[to], r.TaskID))
				}
			}
		}
	}
	for _, m := range members {
		for _, r := range chains[m].Records {
			if r.TaskID == "" {
				p.screen.line(m.id, "refused a request before it was read (%s, status %d)", r.Code, r.HTTPStatus)
			}
		}
	}
	p.screen.line("gaps", "none")
}

// events returns what an instance has recorded of a task.
func events(c peer.Chain, taskID string) string {
	var list []string
	for _, r := range c.Records {
		if r.TaskID != taskID {
			continue
		}
		text := strings.TrimPrefix(string(r.Event), "peer.delegate.")
		switch {
		case r.Code != "":
			text += " (" + r.Code + ")"
		case r.Status != "":
			text += " (" + r.Status + ")"
		}
		list = append(list, text)
	}
	if list == nil {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
