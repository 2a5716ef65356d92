package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Cost is an amount of money in millionths of whatever unit the agent counts in. As
// JSON it is a decimal number of that unit with at most six decimals.
type Cost int64

const costUnit = 1_000_000

// String is the decimal number, without needless zeros.
func (c Cost) String() string {
	sign, n := "", uint64(c)
	if c < 0 {
		sign, n = "-", -n
	}
	s := fmt.Sprintf("%s%d.%06d", sign, n/costUnit, n%costUnit)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// MarshalJSON writes the decimal number.
func (c Cost) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalJSON reads a decimal number exactly; more than six decimals or an
// exponent are refused.
func (c *Cost) UnmarshalJSON(b []byte) error {
	whole, part, _ := strings.Cut(string(bytes.TrimSpace(b)), ".")
	if len(part) > 6 {
		return fmt.Errorf("the cost %s has more than six decimals", b)
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", 6-len(part)), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("the cost %s is too large to be counted", b)
	case err != nil || !json.Valid(b):
		return fmt.Errorf("%s is no cost; write a decimal number such as 2.5", b)
	}
	*c = Cost(n)
	return nil
}
