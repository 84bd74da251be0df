package topics

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Describe prints the catalog as a table with aligned columns, a topic a line. MADE says whether Ensure creates the
// topic and, with "same", that it has one number of partitions with the others that say so.
func Describe(w io.Writer, c Catalog) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	// The errors of these writes come back from Flush.
	_, _ = fmt.Fprintln(table, "TOPIC\tVALUE\tKEY\tCLEANUP\tRETENTION\tMADE")
	for _, s := range c.Specs() {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n",
			s.Name, s.Record, s.Key, s.Cleanup, retention(c, s), made(s))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("topics: describe: %w", err)
	}
	return nil
}

func retention(c Catalog, s Spec) string {
	switch {
	case s.Retention > 0:
		return span(s.Retention)
	case s.Name == c.Loop():
		return "inputs'"
	case s.Cleanup == CleanupCompact:
		return "forever"
	default:
		return "broker's"
	}
}

// span prints whole days and hours as such.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return d.String()
	}
}

func made(s Spec) string {
	switch {
	case !s.Created:
		return "no"
	case s.CoPartitioned:
		return "same"
	default:
		return "yes"
	}
}
