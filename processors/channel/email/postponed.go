package email

import (
	"time"

	"github.com/emersion/go-imap/v2"
)

const (
	firstPostponement   = time.Minute
	longestPostponement = time.Hour
	maxPostponed        = 1000
)

// postponed are the messages that cannot be read, with the time when each is tried again. They are at most maxPostponed: more
// replace those that are due first.
type postponed struct {
	validity uint32 // of the UIDs (RFC 3501, section 2.3.1.1)
	messages map[imap.UID]postponement
	lost     imap.UID // the message at which the connection was lost
}

type postponement struct {
	until time.Time
	wait  time.Duration
}

// folder forgets the messages of another folder.
func (p *postponed) folder(validity uint32) {
	if p.messages == nil || p.validity != validity {
		*p = postponed{validity: validity, messages: map[imap.UID]postponement{}}
	}
}

// add postpones a message and returns for how long.
func (p *postponed) add(uid imap.UID, now time.Time) time.Duration {
	m, known := p.messages[uid]
	if !known && len(p.messages) == maxPostponed {
		first := uid
		for other, m := range p.messages {
			if first == uid || m.until.Before(p.messages[first].until) {
				first = other
			}
		}
		delete(p.messages, first)
	}
	m.wait = min(max(2*m.wait, firstPostponement), longestPostponement)
	m.until = now.Add(m.wait)
	p.messages[uid] = m
	return m.wait
}

// has reports whether a message has to wait.
func (p *postponed) has(uid imap.UID, now time.Time) bool { return p.messages[uid].until.After(now) }

// next returns the first n messages that were found and do not have to wait, and whether there are more. The set may have ranges
// of any length, also open ones, which have no end that could be listed.
func (p *postponed) next(found imap.UIDSet, n int, now time.Time) (uids []imap.UID, more bool) {
	for _, r := range found {
		for uid := r.Start; uid != 0 && uid <= r.Stop; uid++ {
			switch {
			case p.has(uid, now):
			case len(uids) == n:
				return uids, true
			default:
				uids = append(uids, uid)
			}
		}
	}
	return uids, false
}
