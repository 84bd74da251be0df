package door

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// localhost is the name of the machine for itself.
const localhost = "localhost"

// checkHost refuses a request that addresses the door with a name that is not one of the door.
func (o *options) checkHost(v *entrance.Visit, r *http.Request) *entrance.Refusal {
	host := hostOf(r.Host)
	switch {
	case o.hosts != nil && slices.Contains(o.hosts, host):
		return nil
	case o.hosts == nil && (o.authenticate != nil || !arrivedAtLoopback(r) || isLoopback(host)):
		return nil
	}
	return v.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: "Forbidden: the header Host does not name this door"})
}

// hostOf returns the name or address in a header Host, in lower case.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), "."))
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == localhost || err == nil && ip.Unmap().IsLoopback()
}

// arrivedAtLoopback reports whether the connection of a request was accepted at a loopback address.
func arrivedAtLoopback(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}
