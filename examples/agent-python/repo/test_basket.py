import unittest

from basket import total


class Total(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(total([300, 700]), 1000)

    def test_discount(self):
        self.assertEqual(total([300, 700], discount=10), 900)


if __name__ == "__main__":
    unittest.main()
