package permission

import (
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// maxAnswered is how many answered requests are remembered, so that a repeat is not asked again.
const maxAnswered = 256

// GateEnded answers the request of a gate that has ended. A gate that belongs to no open request has no effect.
func (p *Permissions) GateEnded(s *mailbox.Step, who Who, end crewbody.GateEnded) {
	at := slices.IndexFunc(p.Waiting, func(r *Request) bool { return r.GateId == end.GateID })
	if at < 0 {
		return
	}
	r := p.Waiting[at]
	p.Waiting = slices.Delete(p.Waiting, at, at+1)
	by := end.By
	if by == "" {
		by = string(end.Cause)
	}
	p.answer(s, who, r, r.chosen(end), end.Status == topics.GateApproved, by)
	p.resolved(s, who, r, string(end.Status), by)
}

// chosen returns the option that answers a request, empty for cancelled.
func (r *Request) chosen(end crewbody.GateEnded) string {
	at := slices.IndexFunc(r.Options, func(o *Option) bool { return o.Id == end.OptionID && o.Id != "" })
	switch {
	case end.Status == topics.GateApproved && at >= 0:
		return end.OptionID
	case end.Status == topics.GateApproved:
		return r.allowOnce()
	case end.Status == topics.GateDenied && at >= 0 && strings.HasPrefix(r.Options[at].Kind, "reject"):
		return end.OptionID
	case end.Status == topics.GateDenied:
		return r.first("reject_once")
	}
	return ""
}

// CancelAll withdraws the gates of all open requests. answer says that the process still runs and is told. cause is that of
// the outcomes, such as parent_ended.
func (p *Permissions) CancelAll(s *mailbox.Step, who Who, cause topics.GateCause, answer bool) {
	open := p.Waiting
	p.Waiting = nil
	for _, r := range open {
		s.Gate(topics.GateRequest{GateID: r.GateId, SessionID: who.Member.AgentID, Withdrawn: cause})
		if answer {
			p.answer(s, who, r, "", false, string(cause))
		} else {
			p.remember(r)
		}
		p.resolved(s, who, r, string(topics.GateCancelled), string(cause))
	}
}

func (p *Permissions) resolved(s *mailbox.Step, who Who, r *Request, outcome, by string) {
	s.Event("agent:permission_resolved", Resolved{
		AgentID: who.Member.AgentID, RequestID: r.GateId, Outcome: outcome, By: by,
	})
}

// known reports whether a request is open or was answered.
func (p *Permissions) known(req crewbody.Permission) bool {
	for _, r := range p.Waiting {
		if r.Run == req.Run && r.RequestId == req.RequestID {
			return true
		}
	}
	d := digestOf(req.Run, req.RequestID)
	for list := p.Answered; len(list) >= digests.Size; list = list[digests.Size:] {
		if string(list[:digests.Size]) == string(d) {
			return true
		}
	}
	return false
}

func (p *Permissions) remember(r *Request) {
	p.Answered = append(p.Answered, digestOf(r.Run, r.RequestId)...)
	p.Answered = slices.Clone(p.Answered[max(0, len(p.Answered)-maxAnswered*digests.Size):])
}

func digestOf(run, requestID string) []byte {
	d := digests.Of("crew-permission", run, requestID)
	return d[:]
}
