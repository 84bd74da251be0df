package entrance

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/loopback"
)

// pages tells the requests that a page of another site makes a browser send from those of callers. The check does not depend on
// how callers are authenticated: a browser adds cookies and client certificates itself, and a door that accepts everyone would
// obey every page that a user of its network opens.
type pages struct {
	origins *http.CrossOriginProtection // nil: pages of all origins are trusted
	hosts   []string                    // names of the door, patterns of path.Match
	strict  bool                        // the door has no other names than hosts
	renamed bool                        // at a loopback address, the door has no other names than this machine's and hosts
}

// newPages returns the check of a door. AnyOrigin is trusted only if no page can use a credential that it was not given.
func newPages(check *bounds.Check, c Config) (p pages) {
	ambient := c.Authenticate != nil
	p.renamed = c.Authenticate == nil && !c.Tokens
	if c.Hosts != nil {
		p.hosts, p.strict = c.Hosts, true
	}
	if slices.Contains(c.Origins, AnyOrigin) && !ambient {
		p.renamed = false
		return p
	}
	p.origins = http.NewCrossOriginProtection()
	for _, o := range c.Origins {
		if o == AnyOrigin {
			continue
		}
		if !c.Sockets {
			if err := p.origins.AddTrustedOrigin(o); err != nil {
				check.Wrong("Origins", "has %q, want scheme://host, with a port unless it is the scheme's", o)
			}
		}
		if !p.strict {
			if _, host, ok := strings.Cut(o, "://"); ok {
				o = host
			}
			p.hosts = append(p.hosts, loopback.Host(o)) // a proxy on this machine can keep the name that pages use
		}
	}
	return p
}

// check refuses a request of a page that the door does not trust, and one that addresses the door by a name that is not its.
func (p pages) check(r *http.Request) *Refusal {
	if p.strict || p.renamed && loopback.Renamed(r) {
		host := loopback.Host(r.Host)
		if !slices.ContainsFunc(p.hosts, func(pattern string) bool {
			ok, _ := path.Match(pattern, host)
			return ok || pattern == host
		}) {
			return &Refusal{Status: http.StatusForbidden, Text: "Forbidden: the header Host does not name this door"}
		}
	}
	if p.origins != nil && p.origins.Check(r) != nil {
		return &Refusal{Status: http.StatusForbidden, Text: "Forbidden: the origin of the page is not trusted"}
	}
	return nil
}
