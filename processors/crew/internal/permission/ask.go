package permission

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// Who is the agent whose process asks.
type Who struct {
	Member crewbody.Member
	// Run is the action_id of the crewbody.Start of the agent's process, and Host and Epoch are where it runs.
	Run   string
	Epoch int64
	Host  string
	// Timeout is how long a request waits for a person; 0 means a minute.
	Timeout   time.Duration
	SessionID string // of ACP
}

// Bounds of the requests that wait.
const (
	maxOpen        = 100
	maxOpenBytes   = 96 << 10 // of all together
	defaultTimeout = time.Minute
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
	r.ExpiresMs = r.AskedMs + timeoutOf(who).Milliseconds()
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

func timeoutOf(who Who) time.Duration {
	if who.Timeout <= 0 {
		return defaultTimeout
	}
	return who.Timeout
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
	s.Do(who.Host, who.Epoch, crewbody.Answer{
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
