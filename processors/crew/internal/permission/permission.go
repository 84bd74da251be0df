// Package permission decides what an agent asks permission for. A request that is not dangerous is allowed at once under
// autopilot. Any other request becomes a gate, and the gate's outcome answers it. Every request of a process that still runs is answered exactly once.
// The functions are pure: what they do is in the effects of the step.
//
//	autopilot            the first allow_once option, else cancelled; a dangerous request is asked nevertheless
//	approved             the option that the person chose, else the first allow_once option, else cancelled
//	denied               the reject option that the person chose, else the first reject_once option, else cancelled
//	timed out, cancelled cancelled
//
// An allow_always option is selected only if a person chooses it, and is not offered for dangerous requests.
package permission

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// Who is the agent whose process asks.
type Who struct {
	Member crewbody.Member
	// Run is the action_id of the crewbody.Start of the agent's process, and Epoch is the run of the host.
	Run   string
	Epoch int64
	// Timeout is how long a request waits for a person.
	Timeout time.Duration
}

// Bounds of the requests that wait.
const (
	maxOpen      = 100
	maxOpenBytes = 96 << 10 // of all together
)

// By of a crewbody.Answer that no person decided.
const (
	byAutopilot = "autopilot"
	byLimit     = "limit"
)

// via is the Via of the gates' origins.
const via = "crew"

// Ask decides, or asks a person about, a request of the agent's process. A repeat has no effect, and neither has a request
// of another run than who.Run. autopilot decides every request that is not dangerous; a dangerous one waits for a person. A
// request for which there is no room, or that cannot be shown whole, is cancelled at once.
func (p *Permissions) Ask(s *mailbox.Step, who Who, req crewbody.Permission, autopilot bool) {
	if req.Run != who.Run || p.known(req) {
		return
	}
	r := &Request{
		GateId: topics.GateID(who.Member.AgentID, req.Run, req.RequestID), Run: req.Run, RequestId: req.RequestID,
		Method: req.Method != "",
	}
	c := callOf(req)
	r.Dangerous = c.dangerous()
	r.Options = optionsOf(req.Options, r.Dangerous)
	r.show(c)
	r.AskedMs = s.NowMS()
	r.ExpiresMs = r.AskedMs + who.Timeout.Milliseconds()
	switch {
	case autopilot && !r.Dangerous:
		p.answer(s, who, r, r.allowOnce(), true, byAutopilot)
		return
	case !c.visible():
		p.refuse(s, who, r, "a permission request that cannot be shown whole to a person was cancelled")
		return
	case len(p.Waiting) >= maxOpen, p.size()+proto.Size(r) > maxOpenBytes:
		p.refuse(s, who, r, "too many permission requests wait for a person: a further one was cancelled")
		return
	}
	p.Waiting = append(p.Waiting, r)
	s.Gate(topics.GateRequest{
		GateID: r.GateId, SessionID: who.Member.AgentID, Kind: topics.GatePermission, Tool: c.tool(), ToolUseID: c.id(),
		Args: c.args(), Message: c.message(), Options: encodedOptions(r.Options), Dangerous: r.Dangerous,
		Origin: topics.GateOrigin{Agent: who.Member.RoleID, Via: via}, ExpiresMS: r.ExpiresMs,
	})
	s.Event("agent:permission_request", r.event(who.Member.AgentID))
}

// refuse cancels a request that no person is asked about.
func (p *Permissions) refuse(s *mailbox.Step, who Who, r *Request, why string) {
	p.answer(s, who, r, "", false, byLimit)
	s.Event("agent:problem", problem{AgentID: who.Member.AgentID, Message: why})
}

func (p *Permissions) size() (bytes int) {
	for _, r := range p.Waiting {
		bytes += proto.Size(r)
	}
	return bytes
}

// answer answers a request that is not open any more.
func (p *Permissions) answer(s *mailbox.Step, who Who, r *Request, optionID string, allowed bool, by string) {
	p.remember(r)
	s.Do(who.Member.Host, who.Epoch, crewbody.Answer{
		AgentID: who.Member.AgentID, Run: r.Run, RequestID: r.RequestId, OptionID: optionID, Allowed: r.Method && allowed, By: by,
	})
}

// Open returns the requests that wait for a person, oldest first.
func (p *Permissions) Open() []view.PermissionAsked {
	var list []view.PermissionAsked
	for _, r := range p.GetWaiting() {
		list = append(list, r.view())
	}
	return list
}

// Newest returns the ID of the newest of the open requests, empty if there is none: what an answer without an ID is about.
func Newest(open []view.PermissionAsked) string {
	var newest view.PermissionAsked
	for _, r := range open {
		if r.Timestamp >= newest.Timestamp { // of equal times, the later in the list
			newest = r
		}
	}
	return newest.ID
}

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
	by := cmp.Or(end.By, string(end.Cause))
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
