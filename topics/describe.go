package topics

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Describe writes the catalog to w as a table with one line per topic. The column CREATED says whether Ensure creates the
// topic; the topics with "yes, co-partitioned" all have the same number of partitions. It returns the error of w.
func Describe(w io.Writer, c Catalog) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	// Flush returns the errors of these writes.
	_, _ = fmt.Fprintln(table, "TOPIC\tVALUE\tKEY\tCLEANUP\tRETENTION\tCREATED")
	for _, s := range c.Specs() {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n",
			s.Name, s.Record, s.Key, s.Cleanup, retention(c, s), created(s))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("topics: describe: %w", err)
	}
	return nil
}

func retention(c Catalog, s Spec) string {
	switch {
	case s.Retention > 0:
		return formatRetention(s.Retention)
	case s.Name == c.Loop():
		return "as inputs"
	case s.Cleanup == CleanupCompact:
		return "unlimited"
	default:
		return "broker default"
	}
}

// formatRetention formats multiples of a day or an hour in that unit.
func formatRetention(d time.Duration) string {
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

func created(s Spec) string {
	switch {
	case !s.Created:
		return "no"
	case s.CoPartitioned:
		return "yes, co-partitioned"
	default:
		return "yes"
	}
}
