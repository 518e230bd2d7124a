package main

import (
	"io"
	"strings"

	"skald-connectors/form"
)

// table writes rows in columns to standard output; every cell is made safe to
// show. On a terminal nothing is wider than it: the last column is wrapped, or
// stands below the others; where these do not fit either, each row is a block of
// lines. Elsewhere a row is a line.
func (a *app) table(header []string, rows [][]string) error {
	return a.writeTable(header, rows, wrap)
}

// tableCut is table for a last column of which the beginning is enough.
func (a *app) tableCut(header []string, rows [][]string) error {
	return a.writeTable(header, rows, cut)
}

// fit brings text into width cells, each line indented.
type fit func(text string, width int, indent string) string

// cut keeps the beginning of text, on one line.
func cut(text string, width int, indent string) string {
	return indent + shorten(text, max(width-len(indent), 2))
}

func (a *app) writeTable(header []string, rows [][]string, last fit) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = form.Clean(cell)
		}
	}
	width := 0
	if isTerminal(a.stdout) {
		width = a.width()
	}
	_, err := io.WriteString(a.stdout, tableText(header, rows, width, last))
	return err
}

// tableText lays a table out for a width in cells; 0 = it is not bounded. header
// may be empty, and rows may end early.
func tableText(header []string, rows [][]string, width int, last fit) string {
	all := withHeader(header, rows)
	widths := columns(all)
	if width == 0 || sum(widths)-gap <= width {
		return rowsText(all, widths)
	}
	header, rows = withoutEmpty(header, rows)
	all = withHeader(header, rows)
	widths = columns(all)
	n := len(widths) - 1
	if n < 1 || sum(widths)-gap <= width {
		return rowsText(all, widths)
	}
	first := sum(widths[:n])
	switch room := width - first; {
	case room >= max(leastColumn, min(longestWord(rows, n), width/2)):
		hang := strings.Repeat(" ", first)
		return splitText(all, widths, func(head, tail string) string {
			return head + strings.Repeat(" ", first-cells(head)) + strings.TrimPrefix(last(tail, width, hang), hang)
		})
	case first-gap <= width:
		return splitText(all, widths, func(head, tail string) string { return head + "\n" + last(tail, width, "    ") })
	}
	return blocksText(header, rows, width)
}

func withHeader(header []string, rows [][]string) [][]string {
	if len(header) == 0 {
		return rows
	}
	return append([][]string{header}, rows...)
}

// withoutEmpty leaves out the columns in which nothing stands; the first stays.
func withoutEmpty(header []string, rows [][]string) ([]string, [][]string) {
	says := []bool{true}
	for _, row := range rows {
		for i, cell := range row {
			if i == len(says) {
				says = append(says, false)
			}
			says[i] = says[i] || cell != ""
		}
	}
	kept := func(row []string) (out []string) {
		for i, cell := range row {
			if i < len(says) && says[i] {
				out = append(out, cell)
			}
		}
		return out
	}
	fewer := make([][]string, len(rows))
	for i, row := range rows {
		fewer[i] = kept(row)
	}
	return kept(header), fewer
}

// rowsText has every row on a line.
func rowsText(rows [][]string, widths []int) string {
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(aligned(row, widths) + "\n")
	}
	return b.String()
}

// splitText has the last column where place puts it.
func splitText(rows [][]string, widths []int, place func(head, tail string) string) string {
	var b strings.Builder
	n := len(widths) - 1
	for _, row := range rows {
		line := aligned(row[:min(n, len(row))], widths)
		if len(row) > n && row[n] != "" {
			line = place(line, row[n])
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// blocksText has each row as lines: its first cell, and below it what the others
// are and say.
func blocksText(header []string, rows [][]string, width int) string {
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(wrap(row[0], width, "") + "\n")
		for i, cell := range row[1:] {
			if cell == "" {
				continue
			}
			if i+1 < len(header) && header[i+1] != "" {
				cell = strings.ToLower(header[i+1]) + ": " + cell
			}
			b.WriteString("  " + strings.TrimPrefix(wrap(cell, width, "    "), "    ") + "\n")
		}
	}
	return b.String()
}

// aligned is one row in its columns, without spaces at its end.
func aligned(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		b.WriteString(cell + strings.Repeat(" ", widths[i]-cells(cell)))
	}
	return strings.TrimRight(b.String(), " ")
}

// gap is the space between two columns.
const gap = 2

// columns gives the width of each column with the gap behind it. A column is as
// wide as its widest cell whatever the rows between leave out.
func columns(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cells(cell)+gap)
		}
	}
	return widths
}

func sum(list []int) int {
	total := 0
	for _, n := range list {
		total += n
	}
	return total
}

// longestWord is the width of the longest part of a column that cannot be broken.
func longestWord(rows [][]string, column int) int {
	most := 0
	for _, row := range rows {
		if column < len(row) {
			most = max(most, longestPart(row[column]))
		}
	}
	return most
}
