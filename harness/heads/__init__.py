"""The pack of studies that train models or look into trained ones."""
