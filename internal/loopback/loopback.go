// Package loopback tells requests that address this machine by its own names from those that address it by another name. A page
// of any site can make its name resolve to a loopback address (DNS rebinding): a browser then takes the answers of this machine
// for those of the page's site.
package loopback

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Is reports whether a host, without a port, is localhost or a loopback address.
func Is(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// Host returns the name or address in a header Host, in lower case and without a port.
func Host(header string) string {
	if name, _, err := net.SplitHostPort(header); err == nil {
		header = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(header, "["), "]"), "."))
}

// Renamed reports whether a request arrived at a loopback address with another name in its header Host.
func Renamed(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && at.IP.IsLoopback() && !Is(Host(r.Host))
}
