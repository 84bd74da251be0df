package auth

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrPattern is wrapped by the errors of ParseSessions.
var ErrPattern = errors.New("auth: unusable session pattern")

// placeholder stands for the caller's user in a pattern.
const placeholder = "{user}"

// maxPattern is the maximum length of a pattern in bytes, maxPatterns the maximum number of patterns of one caller.
const (
	maxPattern  = 256
	maxPatterns = 64
)

// Sessions is a set of session IDs, described by patterns. The zero value contains no session.
//
// In a pattern, * matches any number of characters, {user} the caller's user, and every other character itself:
//
//	support-1       one session
//	support-*       the sessions whose IDs begin with support-
//	{user}:*        the sessions of the user, for example mira:7 of mira
//	*               every session
//
// {user} may occur once and not after a *. The character that follows it separates the user from the rest: a user whose ID
// contains that character has none of these sessions. Otherwise the user mira could use mira:x:1, a session of mira:x.
type Sessions struct{ patterns []pattern }

// IsZero reports whether no sessions were named. Configurations have a default for them.
func (s Sessions) IsZero() bool { return len(s.patterns) == 0 }

// pattern is a parsed pattern.
type pattern struct {
	prefix string // before {user}; the whole pattern if ofUser is false
	rest   string // after {user}
	ofUser bool
}

// ParseSessions returns the sessions that match one of the patterns. Its error wraps ErrPattern. It fails without a
// pattern, with more than 64 patterns, and for a pattern that is empty, longer than 256 bytes, has an unprintable character
// or a brace outside of {user}, or has {user} in an unsafe place.
func ParseSessions(patterns ...string) (Sessions, error) {
	if len(patterns) == 0 || len(patterns) > maxPatterns {
		return Sessions{}, fmt.Errorf("%w: %d patterns, want 1 to %d", ErrPattern, len(patterns), maxPatterns)
	}
	var s Sessions
	for i, text := range patterns {
		p, err := parsePattern(text)
		if err != nil {
			return Sessions{}, fmt.Errorf("%w %d: %w", ErrPattern, i+1, err)
		}
		s.patterns = append(s.patterns, p)
	}
	return s, nil
}

func parsePattern(text string) (pattern, error) {
	if text == "" || len(text) > maxPattern || !utf8.ValidString(text) {
		return pattern{}, fmt.Errorf("want 1 to %d bytes of UTF-8", maxPattern)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return pattern{}, errors.New("a character is not printable")
	}
	p := pattern{prefix: text}
	p.prefix, p.rest, p.ofUser = strings.Cut(text, placeholder)
	switch {
	case strings.ContainsAny(p.prefix+p.rest, "{}"):
		return pattern{}, errors.New("braces are only for one {user}")
	case p.ofUser && strings.Contains(p.prefix, "*"):
		return pattern{}, errors.New("a * before {user} matches sessions of other users")
	case p.ofUser && strings.HasPrefix(p.rest, "*"):
		return pattern{}, errors.New("{user} needs a separator before a *")
	}
	return p, nil
}

// For returns the function that reports whether a user's caller may use a session, for Caller.MayUse. A pattern with
// {user} matches nothing for the empty user.
func (s Sessions) For(user string) func(sessionID string) bool {
	return func(session string) bool {
		for _, p := range s.patterns {
			if p.matches(user, session) {
				return true
			}
		}
		return false
	}
}

// OfUser reports whether a pattern has {user}.
func (s Sessions) OfUser() bool {
	for _, p := range s.patterns {
		if p.ofUser {
			return true
		}
	}
	return false
}

func (p pattern) matches(user, session string) bool {
	if !p.ofUser {
		return glob(p.prefix, session)
	}
	if separator, size := utf8.DecodeRuneInString(p.rest); size > 0 && strings.ContainsRune(user, separator) {
		return false
	}
	after, ok := strings.CutPrefix(session, p.prefix+user)
	return ok && user != "" && glob(p.rest, after)
}

// glob reports whether text matches a pattern with *. Its time is at most the product of both lengths.
func glob(pattern, text string) bool {
	at, star, retry := 0, -1, 0 // retry is where the last * began to match
	for i := 0; i < len(text); {
		switch {
		case at < len(pattern) && pattern[at] == '*':
			star, retry = at, i
			at++
		case at < len(pattern) && pattern[at] == text[i]:
			at++
			i++
		case star >= 0:
			retry++
			at, i = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(pattern[at:], "*") == ""
}
