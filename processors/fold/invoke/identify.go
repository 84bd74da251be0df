package invoke

import "github.com/turntable-streams/turntable/topics"

// identify returns the request's trace and session. A request without a session gets a new one, unless it resumes a turn.
func (c *exchange) identify(body topics.Raw) (Trace, string, error) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	trace, err := traceOf(c.r.Header, c.door.config.Random)
	if err != nil {
		return Trace{}, "", err
	}
	session, err := sessionOf(body, c.r.Header)
	switch {
	case err != nil:
		return trace, "", err
	case session == "" && c.resumes:
		if session = c.r.URL.Query().Get("session_id"); !validSession(session) {
			return trace, "", errSession
		}
	case session == "":
		session, err = mint(c.door.config.Random)
	}
	return trace, session, err
}
