package sink

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ErrServices is wrapped by every error of ParseServices. The errors name the entry but never its URL, which may contain a
// secret.
var ErrServices = errors.New("sink: bad host mapping")

// CallbackPath is the path of a service's callback, after the base URL. It is the same for all services.
const CallbackPath = "/api/tools/response"

// Services is the registry of callback services: their names and base URLs. It is read-only and the only source of
// addresses: a service that is not in it cannot be called. The zero value is empty.
type Services struct{ urls map[string]string }

// ParseServices parses a host mapping in the format of FlightDeck's ALLOWED_HOST_MAPPING: entries "name:url", separated by
// commas. A blank mapping has no services. If several entries have one name, the last counts. One error names all invalid
// entries and wraps ErrServices.
//
// A URL must be absolute, have the scheme http or https and a host, and have no query, fragment or user. These rules
// are stricter than FlightDeck's.
func ParseServices(mapping string) (Services, error) {
	s := Services{urls: map[string]string{}}
	var errs []error
	number := 0
	for entry := range strings.SplitSeq(mapping, ",") {
		number++
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, base, ok := strings.Cut(entry, ":")
		name, base = strings.TrimSpace(name), strings.TrimSpace(base)
		if !ok || name == "" || base == "" {
			errs = append(errs, fmt.Errorf("%w: entry %d is not name:url", ErrServices, number))
			continue
		}
		if err := checkBase(base); err != nil {
			errs = append(errs, fmt.Errorf("%w: entry %d (%q): %w", ErrServices, number, name, err))
			continue
		}
		s.urls[name] = strings.TrimSuffix(base, "/") + CallbackPath
	}
	if len(errs) > 0 {
		return Services{}, errors.Join(errs...)
	}
	return s, nil
}

var errURL = errors.New("url is not http(s)://host[:port][/path]")

func checkBase(base string) error {
	u, err := url.Parse(base)
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Opaque != "":
		return errURL
	case u.User != nil, u.RawQuery != "", u.ForceQuery, u.Fragment != "", strings.Contains(base, "#"):
		return errURL
	}
	// The callback URL must have the host that was checked.
	callback, err := url.Parse(strings.TrimSuffix(base, "/") + CallbackPath)
	if err != nil || callback.Host != u.Host || !strings.HasSuffix(callback.Path, CallbackPath) {
		return errURL
	}
	return nil
}

// Known reports whether a service with this exact name is in the registry.
func (s Services) Known(service string) bool {
	_, ok := s.urls[service]
	return ok
}

// CallbackURL returns the URL of a service's callback. ok is false if the service is not in the registry.
func (s Services) CallbackURL(service string) (callback string, ok bool) {
	callback, ok = s.urls[service]
	return callback, ok
}

// Names returns the names of the services, sorted.
func (s Services) Names() []string { return slices.Sorted(maps.Keys(s.urls)) }
