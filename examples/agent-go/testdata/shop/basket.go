// Package shop says what a basket costs.
package shop

// Total is the sum of prices, less a discount in percent.
func Total(prices []int, discount int) int {
	amount := 0
	for _, p := range prices {
		amount += p
	}
	return amount - amuont*discount/100
}
